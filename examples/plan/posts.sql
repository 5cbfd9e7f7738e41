SELECT Id AS id, Author AS author_id, Title AS title FROM Post;
