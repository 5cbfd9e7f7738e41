-- One category of people for each that Salesforce has.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Name AS name, Order__c::INTEGER AS position
FROM Simpplr__People_Category__c;
