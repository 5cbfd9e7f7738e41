-- Reactions to posts.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Feed_Item__c AS post_id, People__c AS person_id, lower(Kind__c) AS kind
FROM Simpplr__Reaction__c;
