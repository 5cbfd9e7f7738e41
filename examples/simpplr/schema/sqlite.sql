-- Zeus, the database that tenants are migrated into, for SQLite, which has no schemas: a table is
-- named by both, as in identity_people.

CREATE TABLE accounts_tenants (
  tenant_id TEXT PRIMARY KEY,
  name TEXT NOT NULL
);

CREATE TABLE identity_people_categories (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  name TEXT NOT NULL,
  position INTEGER
);

CREATE TABLE ps_segments (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  name TEXT NOT NULL,
  code TEXT NOT NULL,
  active INTEGER NOT NULL
);

CREATE TABLE identity_segment_members (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  segment_id TEXT NOT NULL REFERENCES ps_segments (id),
  user_id TEXT NOT NULL,
  audience TEXT NOT NULL
);

CREATE TABLE identity_people (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  user_id TEXT NOT NULL,
  category_id TEXT REFERENCES identity_people_categories (id),
  manager_id TEXT REFERENCES identity_people (id),
  first_name TEXT,
  last_name TEXT NOT NULL,
  email TEXT NOT NULL,
  title TEXT,
  department TEXT,
  location TEXT,
  hired_on TEXT,
  active INTEGER NOT NULL,
  created_at TEXT NOT NULL
);

CREATE TABLE ps_app_config (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  key TEXT NOT NULL,
  value TEXT,
  type TEXT NOT NULL
);

CREATE TABLE ps_app_default (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  feature TEXT NOT NULL,
  default_value TEXT
);

CREATE TABLE ps_feature_flags (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  package TEXT NOT NULL,
  version TEXT NOT NULL,
  status TEXT NOT NULL,
  seats INTEGER NOT NULL,
  expires_on TEXT
);

CREATE TABLE identity_expertise (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  person_id TEXT NOT NULL REFERENCES identity_people (id),
  name TEXT NOT NULL,
  level INTEGER NOT NULL
);

CREATE TABLE ps_notification_settings (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  person_id TEXT NOT NULL REFERENCES identity_people (id),
  channel TEXT NOT NULL,
  enabled INTEGER NOT NULL
);

CREATE TABLE cont_folders (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  name TEXT NOT NULL,
  parent_id TEXT REFERENCES cont_folders (id),
  owner_id TEXT NOT NULL REFERENCES identity_people (id)
);

CREATE TABLE cont_topics (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  name TEXT NOT NULL
);

CREATE TABLE cont_sites (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  owner_id TEXT NOT NULL REFERENCES identity_people (id),
  folder_id TEXT REFERENCES cont_folders (id)
);

CREATE TABLE cont_site_members (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  site_id TEXT NOT NULL REFERENCES cont_sites (id),
  person_id TEXT NOT NULL REFERENCES identity_people (id),
  role TEXT NOT NULL
);

CREATE TABLE nv_categories (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  name TEXT NOT NULL,
  topic_id TEXT REFERENCES cont_topics (id)
);

CREATE TABLE nv_items (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  category_id TEXT NOT NULL REFERENCES nv_categories (id),
  label TEXT NOT NULL,
  url TEXT NOT NULL,
  position INTEGER NOT NULL
);

CREATE TABLE cont_pages (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  title TEXT NOT NULL,
  site_id TEXT NOT NULL REFERENCES cont_sites (id),
  folder_id TEXT REFERENCES cont_folders (id),
  author_id TEXT NOT NULL REFERENCES identity_people (id),
  category TEXT,
  published_at TEXT,
  versions INTEGER NOT NULL
);

CREATE TABLE cont_page_versions (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  page_id TEXT NOT NULL REFERENCES cont_pages (id),
  number INTEGER NOT NULL,
  body TEXT
);

CREATE TABLE cont_page_topics (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  page_id TEXT NOT NULL REFERENCES cont_pages (id),
  topic_id TEXT NOT NULL REFERENCES cont_topics (id)
);

CREATE TABLE cont_events (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  title TEXT NOT NULL,
  site_id TEXT NOT NULL REFERENCES cont_sites (id),
  organizer_id TEXT NOT NULL REFERENCES identity_people (id),
  starts_at TEXT NOT NULL,
  ends_at TEXT NOT NULL
);

CREATE TABLE cont_event_attendees (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  event_id TEXT NOT NULL REFERENCES cont_events (id),
  person_id TEXT NOT NULL REFERENCES identity_people (id),
  response TEXT NOT NULL
);

CREATE TABLE cont_albums (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  title TEXT NOT NULL,
  site_id TEXT NOT NULL REFERENCES cont_sites (id),
  owner_id TEXT NOT NULL REFERENCES identity_people (id)
);

CREATE TABLE cont_album_media (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  album_id TEXT NOT NULL REFERENCES cont_albums (id),
  url TEXT NOT NULL,
  kind TEXT NOT NULL
);

CREATE TABLE feed_posts (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  site_id TEXT NOT NULL REFERENCES cont_sites (id),
  author_id TEXT NOT NULL REFERENCES identity_people (id),
  body TEXT NOT NULL,
  created_at TEXT NOT NULL
);

CREATE TABLE qna_questions (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  site_id TEXT NOT NULL REFERENCES cont_sites (id),
  author_id TEXT NOT NULL REFERENCES identity_people (id),
  title TEXT NOT NULL,
  body TEXT
);

CREATE TABLE feed_comments (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  post_id TEXT NOT NULL REFERENCES feed_posts (id),
  author_id TEXT NOT NULL REFERENCES identity_people (id),
  body TEXT NOT NULL,
  created_at TEXT NOT NULL
);

CREATE TABLE qna_answers (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  question_id TEXT NOT NULL REFERENCES qna_questions (id),
  author_id TEXT NOT NULL REFERENCES identity_people (id),
  body TEXT NOT NULL,
  accepted INTEGER NOT NULL
);

CREATE TABLE feed_reactions (
  id TEXT PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL REFERENCES accounts_tenants (tenant_id),
  post_id TEXT NOT NULL REFERENCES feed_posts (id),
  person_id TEXT NOT NULL REFERENCES identity_people (id),
  kind TEXT NOT NULL
);

-- What rank 100 has done before: the tenants are there.
INSERT INTO accounts_tenants VALUES ('acme', 'Acme Inc.'), ('customer-001', 'The first customer');
