-- Posts. One without a text is nothing to show: rejected.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Site__c AS site_id, Author__c AS author_id, Body__c AS body,
       CreatedDate::TIMESTAMPTZ AS created_at,
       CASE WHEN Body__c IS NULL THEN 'no text' END AS _rejected
FROM Simpplr__Feed_Item__c;
