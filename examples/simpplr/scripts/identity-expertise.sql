-- What people say they know.
SELECT claim.Id AS id, getvariable('TENANT_ID') AS tenant_id, claim.People__c AS person_id, expertise.Name AS name,
       claim.Level__c::INTEGER AS level
FROM Simpplr__People_Expertise__c AS claim
JOIN Simpplr__Expertise__c AS expertise ON expertise.Id = claim.Expertise__c;
