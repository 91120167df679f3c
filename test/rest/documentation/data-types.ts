// The types of Postgres.
import type { Page } from './page.ts'

const isolation =
  'extensions belong to the database, which tenants share, so only the operator of the database can install them'
const absent = { status: 404, body: { code: 'PGRST205' } }
const shapes = [
  { id: 1, name: 'small', shape: 'SRID=4326;POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))' },
  { id: 2, name: 'big', shape: 'SRID=4326;POLYGON((0 0, 10 0, 10 10, 0 10, 0 0))' },
]

export const dataTypes: readonly Page[] = [
  {
    page: 'how-tos/working-with-postgresql-data-types',
    read: 'b8b9576',
    sections: [
      {
        section: 'Arrays',
        sql: `
          create table movies (
            id int primary key, title text not null, tags text[], performance_times time[], cinema_floor_auditorium int[][][]);`,
        requests: [
          {
            request: 'POST /movies',
            body: {
              id: 1,
              title: 'Paddington',
              tags: '{family,comedy,not streamable}',
              performance_times: '{12:40,15:00,20:00}',
            },
            response: {
              status: 201,
              stored: {
                'select tags, performance_times::text from movies': [
                  { tags: ['family', 'comedy', 'not streamable'], performance_times: '{12:40:00,15:00:00,20:00:00}' },
                ],
              },
            },
          },
          {
            request: 'POST /movies',
            body: {
              id: 2,
              title: 'Paddington',
              tags: ['family', 'comedy', 'not streamable'],
              performance_times: ['12:40', '15:00', '20:00'],
            },
            response: {
              status: 201,
              stored: {
                'select tags, performance_times::text from movies where id = 2': [
                  { tags: ['family', 'comedy', 'not streamable'], performance_times: '{12:40:00,15:00:00,20:00:00}' },
                ],
              },
            },
            correction: 'the page inserts the same record again',
          },
          {
            request: 'PATCH /movies?id=eq.1',
            body: {
              cinema_floor_auditorium: [
                [
                  [1, 2],
                  [6, 7],
                ],
                [
                  [3, 5],
                  [8, 9],
                ],
              ],
            },
            response: { status: 204 },
          },
          {
            request: 'GET /movies?select=title,auditorium:cinema_floor_auditorium->0->1&id=eq.1',
            response: { status: 200, body: [{ title: 'Paddington', auditorium: [6, 7] }] },
          },
        ],
      },
      {
        section: 'Bytes',
        sql: `
          create table files (id int primary key generated always as identity, file bytea);
          create function upload_binary(bytea) returns void language sql as 'insert into files (file) values ($1)';
          create domain "image/png" as bytea;
          create function get_image(id int) returns "image/png" language sql as 'select file from files where files.id = $1';`,
        requests: [
          {
            request: 'POST /rpc/upload_binary',
            headers: { 'content-type': 'application/octet-stream' },
            body: Buffer.from('ab'),
            response: { status: 204, stored: { "select encode(file, 'hex') as hex from files": [{ hex: '6162' }] } },
          },
          {
            request: 'GET /rpc/get_image?id=1',
            headers: { accept: 'image/png' },
            response: { status: 200, headers: { 'content-type': 'image/png' }, text: 'ab' },
            correction: 'the page omits the beginning of the path',
          },
        ],
      },
      {
        section: 'Composite types',
        sql: `
          create type dimension as (length decimal(6,2), width decimal(6,2), height decimal(6,2), unit text);
          create table products (id int primary key, size dimension);
          insert into products values (1, '(5.0,5.0,10.0,"cm")');`,
        requests: [
          {
            request: 'POST /products',
            body: { id: 2, size: '(0.7,0.5,1.8,"m")' },
            response: {
              status: 201,
              stored: { 'select size::text from products where id = 2': [{ size: '(0.70,0.50,1.80,m)' }] },
            },
          },
          {
            request: 'POST /products',
            body: { id: 3, size: { length: 0.7, width: 0.5, height: 1.8, unit: 'm' } },
            response: {
              status: 201,
              stored: { 'select size::text from products where id = 3': [{ size: '(0.70,0.50,1.80,m)' }] },
            },
            correction: 'the page inserts the same record again',
          },
        ],
      },
      {
        section: 'Enumerations',
        sql: `
          drop table products;
          create type letter_size as enum ('s', 'm', 'l', 'xl');
          create table products (id int primary key generated always as identity, name text, size letter_size);
          insert into products (name, size) values ('hoodie', 'xl'), ('cap', 's');`,
        requests: [
          {
            request: 'POST /products',
            body: { name: 't-shirt', size: 'l' },
            response: { status: 201, stored: { "select size from products where name = 't-shirt'": [{ size: 'l' }] } },
          },
          {
            request: 'GET /products?select=name,size&size=gt.m&order=size',
            response: {
              status: 200,
              body: [
                { name: 't-shirt', size: 'l' },
                { name: 'hoodie', size: 'xl' },
              ],
            },
          },
        ],
      },
      {
        section: 'Extensions: hstore',
        requests: [
          {
            request: 'POST /countries',
            body: [
              { id: 1, name: 'common => Egypt, official => "Arab Republic of Egypt", native => مصر' },
              { id: 2, name: 'common => Germany, official => "Federal Republic of Germany", native => Deutschland' },
            ],
            response: { status: 201 },
            here: { demanded: isolation, instead: absent },
          },
          {
            request: 'GET /countries?select=name->>native&name->>common=like.Egypt',
            response: { status: 200, body: [{ native: 'مصر' }] },
            here: { demanded: isolation, instead: absent },
          },
        ],
      },
      {
        section: 'JSON',
        sql: `
          drop table products;
          create table products (id int primary key, name text unique, extra_info json);`,
        requests: [
          {
            request: 'POST /products',
            body: { id: 1, name: 'Canned fish', extra_info: { expiry_date: '2025-12-31', exportable: true } },
            response: {
              status: 201,
              stored: {
                'select extra_info from products': [{ extra_info: { expiry_date: '2025-12-31', exportable: true } }],
              },
            },
          },
        ],
      },
      {
        section: 'Ranges',
        sql: 'create table events (id int primary key, name text unique, duration tsrange);',
        requests: [
          {
            request: 'POST /events',
            body: { id: 1, name: "New Year's Party", duration: '[2022-12-31 11:00,2023-01-01 06:00]' },
            response: { status: 201 },
            correction: 'without the quotes, which a range does not accept',
          },
          {
            request: 'GET /events?duration=cs.[2023-01-01,2023-01-01]',
            response: {
              status: 200,
              body: [{ id: 1, name: "New Year's Party", duration: '["2022-12-31 11:00:00","2023-01-01 06:00:00"]' }],
            },
          },
        ],
      },
      {
        section: 'A cast of a range to JSON',
        sql: `
          create type mytsrange as range (subtype = timestamp);
          create function mytsrange_to_json(mytsrange) returns json language sql as $$ select json_build_object(
            'lower', lower($1), 'upper', upper($1), 'lower_inc', lower_inc($1), 'upper_inc', upper_inc($1)) $$;
          create cast (mytsrange as json) with function mytsrange_to_json(mytsrange) as assignment;
          alter table events alter duration type mytsrange using duration::text::mytsrange;`,
        requests: [
          {
            request: 'GET /events?select=id,name,duration::json',
            response: {
              status: 200,
              body: [
                {
                  id: 1,
                  name: "New Year's Party",
                  duration: {
                    lower: '2022-12-31T11:00:00',
                    upper: '2023-01-01T06:00:00',
                    lower_inc: true,
                    upper_inc: true,
                  },
                },
              ],
            },
            correction: 'with a type of our own, because only its owner can create casts of a type',
          },
        ],
      },
      {
        section: 'Timestamps',
        sql: 'create table reports (id int primary key, due_date timestamptz);',
        requests: [
          {
            request: 'POST /reports',
            body: [
              { id: 1, due_date: '2022-02-24 11:10:15 Australia/Sydney' },
              { id: 2, due_date: '2022-02-27 22:00:00 Australia/Sydney' },
            ],
            response: { status: 201 },
          },
          {
            request: 'GET /reports?due_date=eq.2022-02-24+02:10:15+Africa/Cairo',
            response: { status: 200, body: [{ id: 1, due_date: '2022-02-24T00:10:15+00:00' }] },
            correction: 'the time zone of the server is UTC',
          },
          {
            request:
              'GET /reports?or=(and(due_date.gte.today,due_date.lte.tomorrow),and(due_date.gt.-infinity,due_date.lte.epoch))',
            response: { status: 200, body: [] },
            correction: 'no record of ours is due today',
          },
        ],
      },
    ],
  },
  {
    page: 'integrations/postgis',
    read: '86f03c5',
    sections: [
      {
        section: 'Geometries',
        requests: [
          {
            request: 'POST /coverage',
            body: shapes,
            response: { status: 201 },
            here: { demanded: isolation, instead: absent },
          },
          {
            request: 'GET /coverage',
            headers: { accept: 'application/geo+json' },
            response: { status: 200, text: /^\{"type" ?: ?"FeatureCollection"/ },
            here: { demanded: isolation, instead: { status: 406, body: { code: 'PGRST107' } } },
          },
          {
            request: 'GET /rpc/coverage_geo_collection',
            response: { status: 200, text: /^\{"type" ?: ?"FeatureCollection"/ },
            here: { demanded: isolation, instead: { status: 404, body: { code: 'PGRST202' } } },
          },
        ],
      },
    ],
  },
]
