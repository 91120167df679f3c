// Objects of each kind that a tenant can create in SQL and that a backup supports.

/** Creates a type, domain, sequence, function, table, partition, index, view, trigger, policy, rule and more, with rows. */
export const everyObjectSql = `create type mood as enum ('calm', 'it''s so');
  create domain short as varchar(20) default 'x' not null constraint shortish check (length(value) < 15);
  create type pair as (left_part int, right_part mood);
  create sequence counted start 100 increment 5;
  create function label(n int) returns text language sql immutable return 'n' || n;
  create table facts (id int generated always as identity primary key, at timestamptz default now(), what mood not null default 'calm',
    name short, both_parts pair, list int[], doc jsonb, double int, named text generated always as ('<' || coalesce(name, '')) stored,
    number int default nextval('counted'), kind varchar check (kind in ('a', 'b')), raw bytea);
  alter sequence counted owned by facts.number;
  create table parts (id int, day date not null, fact int references facts (id) on delete cascade, primary key (id, day)) partition
    by range (day);
  create table parts_1 partition of parts for values from ('2026-01-01') to ('2026-07-01');
  create table parts_2 partition of parts for values from ('2026-07-01') to ('2027-01-01');
  create table wide (rows int);
  create index facts_named on facts (lower(named)) where double > 1;
  create view seen with (security_invoker = true) as select id, named from facts where label(id) <> '';
  create view grouped as select f.id, f.what, count(p.id) from facts f left join parts p on p.fact = f.id group by f.id;
  create materialized view counts as select what, count(*) as n from facts group by what;
  create unique index counts_what on counts (what);
  create function touch() returns trigger language plpgsql as $$ begin new.double := coalesce(new.number, 0) * 2; return new; end $$;
  create trigger touched before insert on facts for each row execute function touch();
  create policy mine on facts for select to public using (name is not null);
  alter table facts enable row level security;
  create rule no_wide as on delete to wide do instead nothing;
  create statistics pairs on what, kind from facts;
  comment on table facts is 'what is so';
  comment on column facts.kind is 'a or b';
  revoke execute on function label(int) from public;
  insert into facts (what, name, both_parts, list, doc, kind, raw) select 'it''s so', 'n' || i, row(i, 'calm')::pair, array[i, i +
    1], jsonb_build_object('i', i), 'a', '\\x00ff'
    from generate_series(1, 500) i;
  insert into parts select i, date '2026-01-01' + i % 300, i from generate_series(1, 300) i;
  refresh materialized view counts;`
