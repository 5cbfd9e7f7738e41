-- Topics.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Name AS name FROM Simpplr__Topic__c;
