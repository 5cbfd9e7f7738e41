-- Sites, then their members, who refer to them.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Name AS name, lower(Type__c) AS kind, Owner__c AS owner_id,
       Folder__c AS folder_id
FROM Simpplr__Site__c;

CREATE TABLE target.site_members AS
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Site__c AS site_id, People__c AS person_id, lower(Role__c) AS role
FROM Simpplr__Site_Member__c;
