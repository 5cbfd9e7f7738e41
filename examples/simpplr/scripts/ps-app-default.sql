-- Defaults of features.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Feature__c AS feature, Default_Value__c AS default_value
FROM Simpplr__App_Default__c;
