-- Segments, with codes as the new system spells them.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Name AS name, lower(Code__c) AS code, Active__c::BOOLEAN AS active
FROM Simpplr__Segment__c;
