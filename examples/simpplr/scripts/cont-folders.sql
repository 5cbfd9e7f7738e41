-- Folders, each perhaps in another.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Name AS name, Parent__c AS parent_id, Owner__c AS owner_id
FROM Simpplr__Folder__c;
