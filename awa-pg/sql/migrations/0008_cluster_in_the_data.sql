-- additive
--
-- Purpose: the cluster that the rows are of, beside the one that the functions are of: a restore of data alone carries the
--   rows into functions that know another cluster.

-- Written with the first installation and by repair, and never by an upgrade.
ALTER TABLE /*schema*/awa.installation ADD COLUMN cluster bigint;
