-- Pages with their categories by name, then their versions and topics.
SELECT page.Id AS id, getvariable('TENANT_ID') AS tenant_id, page.Title__c AS title, page.Site__c AS site_id,
       page.Folder__c AS folder_id, page.Author__c AS author_id, category.Name AS category,
       page.Published__c::TIMESTAMPTZ AS published_at, coalesce(versions.number, 0) AS versions
FROM Simpplr__Page__c AS page
LEFT JOIN Simpplr__Page_Category__c AS category ON category.Id = page.Page_Category__c
LEFT JOIN (SELECT Page__c, count(*)::INTEGER AS number FROM Simpplr__Content_Version__c GROUP BY Page__c)
       AS versions ON versions.Page__c = page.Id;

CREATE TABLE target.page_versions AS
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Page__c AS page_id, Number__c::INTEGER AS number, Body__c AS body
FROM Simpplr__Content_Version__c;

CREATE TABLE target.page_topics AS
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Page__c AS page_id, Topic__c AS topic_id
FROM Simpplr__Content_Topic__c;
