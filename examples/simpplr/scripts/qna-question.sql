-- Questions.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Site__c AS site_id, Author__c AS author_id, Title__c AS title,
       Body__c AS body
FROM Simpplr__Question__c;
