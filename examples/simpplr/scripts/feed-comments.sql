-- Comments on posts.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Feed_Item__c AS post_id, Author__c AS author_id, Body__c AS body,
       CreatedDate::TIMESTAMPTZ AS created_at
FROM Simpplr__Feed_Item_Comment__c;
