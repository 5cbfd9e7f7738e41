-- Who is in which segment: audiences are segments under another name. People are loaded later, so that a
-- member is known by the user's id.
SELECT member.Id AS id, getvariable('TENANT_ID') AS tenant_id, audience.Segment__c AS segment_id, member.User__c AS user_id,
       audience.Name AS audience,
       CASE WHEN audience.Id IS NULL THEN 'audience ' || member.Audience__c || ' is not there' END AS _rejected
FROM Simpplr__Audience_Member__c AS member
LEFT JOIN Simpplr__Audience__c AS audience ON audience.Id = member.Audience__c;
