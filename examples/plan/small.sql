CREATE TABLE identity_people (id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, name TEXT NOT NULL, email TEXT);
CREATE TABLE feed_posts (id TEXT PRIMARY KEY, author_id TEXT NOT NULL REFERENCES identity_people (id), title TEXT);
