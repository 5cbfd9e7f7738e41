-- Zeus, the database that tenants are migrated into, for PostgreSQL.

CREATE SCHEMA accounts;
CREATE SCHEMA identity;
CREATE SCHEMA ps;
CREATE SCHEMA cont;
CREATE SCHEMA nv;
CREATE SCHEMA feed;
CREATE SCHEMA qna;

CREATE TABLE accounts.tenants (
  tenant_id text PRIMARY KEY,
  name text NOT NULL
);

CREATE TABLE identity.people_categories (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  name text NOT NULL,
  position integer
);

CREATE TABLE ps.segments (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  name text NOT NULL,
  code text NOT NULL,
  active boolean NOT NULL
);

CREATE TABLE identity.segment_members (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  segment_id text NOT NULL REFERENCES ps.segments (id),
  user_id text NOT NULL,
  audience text NOT NULL
);

CREATE TABLE identity.people (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  user_id text NOT NULL,
  category_id text REFERENCES identity.people_categories (id),
  manager_id text REFERENCES identity.people (id),
  first_name text,
  last_name text NOT NULL,
  email text NOT NULL,
  title text,
  department text,
  location text,
  hired_on date,
  active boolean NOT NULL,
  created_at timestamptz NOT NULL
);

CREATE TABLE ps.app_config (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  key text NOT NULL,
  value text,
  type text NOT NULL
);

CREATE TABLE ps.app_default (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  feature text NOT NULL,
  default_value text
);

CREATE TABLE ps.feature_flags (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  package text NOT NULL,
  version text NOT NULL,
  status text NOT NULL,
  seats integer NOT NULL,
  expires_on date
);

CREATE TABLE identity.expertise (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  person_id text NOT NULL REFERENCES identity.people (id),
  name text NOT NULL,
  level integer NOT NULL
);

CREATE TABLE ps.notification_settings (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  person_id text NOT NULL REFERENCES identity.people (id),
  channel text NOT NULL,
  enabled boolean NOT NULL
);

CREATE TABLE cont.folders (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  name text NOT NULL,
  parent_id text REFERENCES cont.folders (id),
  owner_id text NOT NULL REFERENCES identity.people (id)
);

CREATE TABLE cont.topics (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  name text NOT NULL
);

CREATE TABLE cont.sites (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  name text NOT NULL,
  kind text NOT NULL,
  owner_id text NOT NULL REFERENCES identity.people (id),
  folder_id text REFERENCES cont.folders (id)
);

CREATE TABLE cont.site_members (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  site_id text NOT NULL REFERENCES cont.sites (id),
  person_id text NOT NULL REFERENCES identity.people (id),
  role text NOT NULL
);

CREATE TABLE nv.categories (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  name text NOT NULL,
  topic_id text REFERENCES cont.topics (id)
);

CREATE TABLE nv.items (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  category_id text NOT NULL REFERENCES nv.categories (id),
  label text NOT NULL,
  url text NOT NULL,
  position integer NOT NULL
);

CREATE TABLE cont.pages (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  title text NOT NULL,
  site_id text NOT NULL REFERENCES cont.sites (id),
  folder_id text REFERENCES cont.folders (id),
  author_id text NOT NULL REFERENCES identity.people (id),
  category text,
  published_at timestamptz,
  versions integer NOT NULL
);

CREATE TABLE cont.page_versions (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  page_id text NOT NULL REFERENCES cont.pages (id),
  number integer NOT NULL,
  body text
);

CREATE TABLE cont.page_topics (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  page_id text NOT NULL REFERENCES cont.pages (id),
  topic_id text NOT NULL REFERENCES cont.topics (id)
);

CREATE TABLE cont.events (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  title text NOT NULL,
  site_id text NOT NULL REFERENCES cont.sites (id),
  organizer_id text NOT NULL REFERENCES identity.people (id),
  starts_at timestamptz NOT NULL,
  ends_at timestamptz NOT NULL
);

CREATE TABLE cont.event_attendees (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  event_id text NOT NULL REFERENCES cont.events (id),
  person_id text NOT NULL REFERENCES identity.people (id),
  response text NOT NULL
);

CREATE TABLE cont.albums (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  title text NOT NULL,
  site_id text NOT NULL REFERENCES cont.sites (id),
  owner_id text NOT NULL REFERENCES identity.people (id)
);

CREATE TABLE cont.album_media (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  album_id text NOT NULL REFERENCES cont.albums (id),
  url text NOT NULL,
  kind text NOT NULL
);

CREATE TABLE feed.posts (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  site_id text NOT NULL REFERENCES cont.sites (id),
  author_id text NOT NULL REFERENCES identity.people (id),
  body text NOT NULL,
  created_at timestamptz NOT NULL
);

CREATE TABLE qna.questions (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  site_id text NOT NULL REFERENCES cont.sites (id),
  author_id text NOT NULL REFERENCES identity.people (id),
  title text NOT NULL,
  body text
);

CREATE TABLE feed.comments (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  post_id text NOT NULL REFERENCES feed.posts (id),
  author_id text NOT NULL REFERENCES identity.people (id),
  body text NOT NULL,
  created_at timestamptz NOT NULL
);

CREATE TABLE qna.answers (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  question_id text NOT NULL REFERENCES qna.questions (id),
  author_id text NOT NULL REFERENCES identity.people (id),
  body text NOT NULL,
  accepted boolean NOT NULL
);

CREATE TABLE feed.reactions (
  id text PRIMARY KEY,
  tenant_id text NOT NULL REFERENCES accounts.tenants (tenant_id),
  post_id text NOT NULL REFERENCES feed.posts (id),
  person_id text NOT NULL REFERENCES identity.people (id),
  kind text NOT NULL
);

-- What rank 100 has done before: the tenants are there.
INSERT INTO accounts.tenants VALUES ('acme', 'Acme Inc.'), ('customer-001', 'The first customer');
