"""Who runs the tasks of a job: processes of one machine, or a cluster; all give the same release."""
