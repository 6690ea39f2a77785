SELECT n, pg_try_advisory_xact_lock($1, hashtext(n)), EXISTS (SELECT FROM daybook.organizations o WHERE o.id = n AND o.rate IS NOT NULL)
  FROM unnest($2::text[]) AS n
