-- Events and who comes, albums and what is in them.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Title__c AS title, Site__c AS site_id, Organizer__c AS organizer_id,
       Start__c::TIMESTAMPTZ AS starts_at, End__c::TIMESTAMPTZ AS ends_at,
       CASE WHEN End__c::TIMESTAMPTZ < Start__c::TIMESTAMPTZ THEN 'ends before it starts' END AS _rejected
FROM Simpplr__Event__c;

CREATE TABLE target.event_attendees AS
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Event__c AS event_id, People__c AS person_id, lower(Response__c) AS response
FROM Simpplr__Event_Attendee__c;

CREATE TABLE target.albums AS
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Title__c AS title, Site__c AS site_id, Owner__c AS owner_id
FROM Simpplr__Album__c;

CREATE TABLE target.album_media AS
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Album__c AS album_id, Url__c AS url, lower(Kind__c) AS kind
FROM Simpplr__Album_Media__c;
