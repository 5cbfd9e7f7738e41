-- Answers to questions.
SELECT Id AS id, getvariable('TENANT_ID') AS tenant_id, Question__c AS question_id, Author__c AS author_id, Body__c AS body,
       Accepted__c::BOOLEAN AS accepted
FROM Simpplr__Answer__c;
