// Functions.
import type { Page } from './page.ts'

const [okja, call, blade] = [
  { title: 'Okja', rating: 7.4 },
  { title: 'Call me by your name', rating: 8 },
  { title: 'Blade Runner 2049', rating: 8.1 },
]

export const functions: Page = {
  page: 'references/api/functions',
  read: '180a96c',
  sections: [
    {
      section: 'Arguments',
      sql: `
        create function add_them(a integer, b integer) returns integer immutable language sql as 'select a + b';
        create table data_table (data_int_column integer, data_text_column text);
        insert into data_table values (1, 'a'), (2, 'b');
        create function update_data(p_json jsonb) returns void language plpgsql as $$
          declare item jsonb;
          begin
            for item in select jsonb_array_elements(p_json) loop
              update data_table set data_text_column = item->>'data_text' where data_int_column = (item->>'data_int')::integer;
            end loop;
          end $$;
        create function mult_them(json) returns int language sql as $$ select ($1->>'x')::int * ($1->>'y')::int $$;
        create table files (blob bytea);
        create function upload_binary(bytea) returns void language sql as 'insert into files values ($1)';
        create function plus_one(arr int[]) returns int[] language sql as 'select array_agg(n + 1) from unnest($1) as n';`,
      requests: [
        { request: 'POST /rpc/add_them', body: { a: 1, b: 2 }, response: { status: 200, body: 3 } },
        { request: 'GET /rpc/add_them?a=1&b=2', response: { status: 200, body: 3 } },
        {
          request: 'POST /rpc/update_data',
          body: {
            p_json: [
              { data_text: 'one', data_int: '1' },
              { data_text: 'two', data_int: '2' },
            ],
          },
          response: {
            status: 204,
            stored: {
              'select * from data_table order by 1': [
                { data_int_column: 1, data_text_column: 'one' },
                { data_int_column: 2, data_text_column: 'two' },
              ],
            },
          },
          correction: 'the SQL of the page is not valid for its language and volatility',
        },
        { request: 'POST /rpc/mult_them', body: { x: 4, y: 2 }, response: { status: 200, body: 8 } },
        {
          request: 'POST /rpc/upload_binary',
          headers: { 'content-type': 'application/octet-stream' },
          body: Buffer.from([0, 1, 255]),
          response: { status: 204, stored: { "select encode(blob, 'hex') as hex from files": [{ hex: '0001ff' }] } },
          correction: 'the page shows the status 200 for a function that returns void',
        },
        { request: 'POST /rpc/plus_one', body: { arr: [1, 2, 3, 4] }, response: { status: 200, body: [2, 3, 4, 5] } },
        {
          request: 'GET /rpc/plus_one?arr=%7B1,2,3,4%7D',
          response: { status: 200, body: [2, 3, 4, 5] },
          correction: 'the page has a quote too many',
        },
        { request: 'POST /rpc/plus_one', body: { arr: '{1,2,3,4}' }, response: { status: 200, body: [2, 3, 4, 5] } },
      ],
    },
    {
      section: 'Variadic functions',
      sql: `
        drop function plus_one;
        create function plus_one(variadic v int[]) returns int[] language sql
          as 'select array_agg(n + 1) from unnest($1) as n';`,
      requests: [
        { request: 'POST /rpc/plus_one', body: { v: [1, 2, 3, 4] }, response: { status: 200, body: [2, 3, 4, 5] } },
        { request: 'GET /rpc/plus_one?v=1&v=2&v=3&v=4', response: { status: 200, body: [2, 3, 4, 5] } },
        {
          request: 'POST /rpc/plus_one',
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: 'v=1&v=2&v=3&v=4',
          response: { status: 200, body: [2, 3, 4, 5] },
        },
      ],
    },
    {
      section: 'Results',
      sql: `
        create table directors (id integer primary key, name text);
        create table films (title text, rating numeric(3,1), director_id integer references directors);
        insert into directors values (1, 'Bong');
        insert into films values ('Okja', 7.4, 1), ('Call me by your name', 8, null), ('Blade Runner 2049', 8.1, null);
        create function best_films_2017() returns setof films language sql as 'select * from films';
        create table projects (id integer primary key, name text, client_id integer);
        insert into projects values (1, 'Windows 7', 1), (2, 'Windows 10', 1), (3, 'IOS', 2);
        create function getallprojects() returns setof projects stable language sql as 'select * from projects';
        create function projects_setof_record() returns setof record language sql as 'select * from projects';
        create function rental_duration(customer_id integer) returns text immutable language sql as $$ select 'all' $$;
        create function rental_duration(customer_id integer, from_date date) returns text immutable language sql
          as $$ select 'since ' || from_date::text $$;`,
      requests: [
        {
          request: 'GET /rpc/best_films_2017?select=title,director:directors(*)',
          response: { status: 200, body: [{ title: 'Okja', director: { id: 1, name: 'Bong' } }, '..'] },
        },
        {
          request: 'GET /rpc/best_films_2017?rating=gt.8&order=title.desc',
          response: { status: 200, body: [{ ...blade, director_id: null }] },
        },
        {
          request: 'GET /rpc/getallprojects?id=eq.1',
          as: 'service',
          headers: { accept: 'application/vnd.pgrst.plan' },
          response: { status: 200, text: /^Aggregate(?![^]*Function Scan)[^]*projects/ },
          correction: 'plans are enabled for the service role only',
        },
        { request: 'GET /rpc/add_them?a=1&b=2', response: { status: 200, body: 3 } },
        {
          request: 'GET /rpc/projects_setof_record',
          response: {
            status: 200,
            body: [
              { id: 1, name: 'Windows 7', client_id: 1 },
              { id: 2, name: 'Windows 10', client_id: 1 },
              { id: 3, name: 'IOS', client_id: 2 },
            ],
          },
        },
        { request: 'GET /rpc/rental_duration?customer_id=232', response: { status: 200, body: 'all' } },
        {
          request: 'GET /rpc/rental_duration?customer_id=232&from_date=2018-07-01',
          response: { status: 200, body: 'since 2018-07-01' },
        },
      ],
    },
    {
      section: 'Results of table-valued functions',
      sql: 'alter table films drop column director_id;',
      requests: [{ request: 'GET /rpc/best_films_2017', response: { status: 200, body: [okja, call, blade] } }],
    },
  ],
}
