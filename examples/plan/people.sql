SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Name AS name, lower(Email) AS email FROM "User";
