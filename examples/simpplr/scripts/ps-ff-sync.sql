-- What a license allows: one flag for each, named by package and version.
SELECT license.Id AS id, getvariable('TENANT_ID') AS tenant_id, package.Name AS package, version.Version__c AS version,
       lower(license.Status__c) AS status, license.Seats__c::INTEGER AS seats,
       license.Expires__c::DATE AS expires_on
FROM sfLma__License__c AS license
JOIN sfLma__Package_Version__c AS version ON version.Id = license.Package_Version__c
JOIN sfLma__Package__c AS package ON package.Id = version.Package__c;
