-- A person is a profile and the user it belongs to. A profile without a user cannot log in: rejected.
SELECT person.Id AS id, getvariable('TENANT_ID') AS tenant_id, person.User__c AS user_id, person.Category__c AS category_id,
       manager.Id AS manager_id, account.FirstName AS first_name, account.LastName AS last_name,
       lower(account.Email) AS email, person.Title__c AS title, account.Department AS department,
       person.Location__c AS location, person.Hire_Date__c::DATE AS hired_on,
       account.IsActive::BOOLEAN AS active, account.CreatedDate::TIMESTAMPTZ AS created_at,
       CASE WHEN account.Id IS NULL THEN 'no user ' || person.User__c END AS _rejected
FROM Simpplr__People__c AS person
LEFT JOIN "User" AS account ON account.Id = person.User__c
LEFT JOIN Simpplr__People__c AS manager ON manager.User__c = account.ManagerId;
