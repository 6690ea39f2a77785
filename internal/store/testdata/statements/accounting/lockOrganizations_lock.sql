SELECT n, pg_try_advisory_xact_lock($1, hashtext(n)),  false
  FROM unnest($2::text[]) AS n
