-- Aggregates read partitions of one part without merging the versions of their records,
-- which takes half of their time. Days to which nothing comes any more become such.
ALTER TABLE records{cluster} MODIFY SETTING min_age_to_force_merge_seconds = 3600, min_age_to_force_merge_on_partition_only = 1;
