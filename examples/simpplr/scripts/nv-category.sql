-- Categories of the navigation, then what they hold.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Name AS name, Topic__c AS topic_id
FROM Simpplr__Navigation_Category__c;

CREATE TABLE target.items AS
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Category__c AS category_id, Label__c AS label, Url__c AS url,
       Order__c::INTEGER AS position
FROM Simpplr__Navigation_Item__c;
