-- +goose Up
-- create "api_keys" table
CREATE TABLE `api_keys` (`id` text NOT NULL, `hash` blob NOT NULL, `issuer` text NOT NULL, `subject` text NOT NULL, `operator` bool NOT NULL, `note` text NOT NULL, `created_by` text NOT NULL, `created_at` datetime NOT NULL, `expires_at` datetime NULL, `last_used_at` datetime NULL, `revoked_at` datetime NULL, `revoked_by` text NULL, PRIMARY KEY (`id`));
-- create index "apikey_issuer_subject" to table: "api_keys"
CREATE INDEX `apikey_issuer_subject` ON `api_keys` (`issuer`, `subject`);

-- +goose Down
-- reverse: create index "apikey_issuer_subject" to table: "api_keys"
DROP INDEX `apikey_issuer_subject`;
-- reverse: create "api_keys" table
DROP TABLE `api_keys`;
