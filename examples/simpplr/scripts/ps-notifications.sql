-- How people want to be told.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, People__c AS person_id, lower(Channel__c) AS channel,
       Enabled__c::BOOLEAN AS enabled
FROM Simpplr__Notification_Setting__c;
