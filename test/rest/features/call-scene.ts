// Functions, domains and tables of the feature tests for calls, media types, and settings of the request and the response.

export const callScene = `
create function grab(a integer default 1, integer default 2) returns integer immutable language sql as 'select a + $2';
create function loads() returns integer immutable language sql as 'select 1';
create function loads(x integer, y integer) returns integer immutable language sql as 'select x + y';
create function loads(json) returns json immutable language sql as 'select $1';
create function loads(text) returns text immutable language sql as 'select $1';
create function loads(bytea) returns integer immutable language sql as 'select length($1)';
create function loads(xml) returns text immutable language sql as $$ select 'xml ' || $1::text $$;
create function twins(json) returns integer immutable language sql as 'select 1';
create function twins(jsonb) returns integer immutable language sql as 'select 2';
create function books_with(id bigint, above numeric default 0) returns setof books stable language sql
  as 'select * from books where books.id >= books_with.id and price > above order by books.id';
create domain a_book as books;
create function domain_book() returns a_book stable language sql as 'select b::a_book from books b order by id limit 1';
create function drop_lines(last integer) returns setof lines volatile language sql
  as $$ delete from lines where entry like 'drop%' and at <= last returning * $$;

create domain rank as integer default 666;
create domain phrase as tsvector;
create table defaults (id integer primary key, rank rank, label text default 'none', words phrase, tags text[] default '{a,b}');
alter table defaults enable row level security;
create policy allow_all on defaults using (true) with check (true);
create table spare (id integer primary key, label text);
insert into spare values (1, 'a'), (2, 'b');
alter table spare enable row level security;
create policy allow_all on spare using (true) with check (true);
create view counted_books with (security_invoker) as select author_id, count(*) as n from books group by 1;

create domain "text/html" as text;
create domain "image/png" as bytea;
create domain "*/*" as bytea;
create domain "application/vnd.titles" as text;
create domain "text/tab-separated-values" as text;
create domain "text/csv" as text;
create function page() returns "text/html" stable language sql as $$ select '<p>hello</p>' $$;
create function picture() returns "image/png" immutable language sql as $$ select '\\x89504e470d0a1a0a00ff'::bytea $$;
create function anything() returns "*/*" stable language plpgsql as $$
begin
  if current_setting('request.headers', true)::json->>'accept' = 'text/css' then
    perform set_config('response.headers', '[{"Content-Type": "text/css"}]', true);
  end if;
  return 'any'::bytea;
end $$;
create function no_page() returns "text/html" stable language sql as 'select null';
create function pages() returns setof "text/html" stable language sql as $$ select '<p>hello</p>' $$;
create function add_title(state text, book books) returns "application/vnd.titles" immutable language sql
  as $$ select state || book.title || ';' $$;
create aggregate titles_of(books) (sfunc = add_title, stype = "application/vnd.titles", initcond = '');
create function add_tsv(state text, anyelement) returns "text/tab-separated-values" immutable language sql
  as $$ select state || trim(both '()' from replace($2::text, ',', E'\\t')) || E'\\n' $$;
create aggregate tsv_of(anyelement) (sfunc = add_tsv, stype = "text/tab-separated-values", initcond = '');
create function add_shelf_line(state text, shelf shelves) returns "text/csv" language plpgsql immutable as $$
begin return state || shelf.id || ';' || shelf.label || E'\\n'; end $$;
create aggregate shelf_lines(shelves) (sfunc = add_shelf_line, stype = "text/csv", initcond = E'id;label\\n');

create function request_setting(name text) returns text stable language sql as $$ select current_setting('request.' || name, true) $$;
create function set_response(headers text, status text) returns json volatile language plpgsql as $$
begin
  perform set_config('response.headers', headers, true), set_config('response.status', status, true);
  return '{"done": true}';
end $$;
create function set_for_session() returns text stable language plpgsql as $$
begin perform set_config('response.headers', '[{"X-Of": "another"}]', false); return 'done'; end $$;
create function touch_line() returns trigger language plpgsql as $$
begin
  if new.entry = 'touched by a trigger' then
    perform set_config('response.headers', '[{"X-Entry": "touched"}]', true), set_config('response.status', '202', true);
  end if;
  return new;
end $$;
create trigger touched before insert on lines for each row execute function touch_line();
create function raise_whole(message text, detail text) returns integer volatile language plpgsql as $$
begin raise sqlstate 'PGRST' using message = message, detail = detail; end $$;
create function raise_short() returns integer volatile language plpgsql as $$ begin raise sqlstate 'PGRST' using message = '{}'; end $$;
create function local_time() returns text stable language sql as $$ select '2026-01-01T00:00:00Z'::timestamptz::text $$;
`
