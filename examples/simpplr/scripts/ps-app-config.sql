-- Settings of the application.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Key__c AS key, Value__c AS value, lower(Type__c) AS type
FROM Simpplr__App_Config__c;
