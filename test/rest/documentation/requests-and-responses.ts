// Pages, counts, names in paths, schemas, OpenAPI, OPTIONS, CORS.
import type { Page } from './page.ts'

const people = Array.from({ length: 18 }, (_, at) => ({ id: at + 1 }))

export const requestsAndResponses: readonly Page[] = [
  {
    page: 'references/api/pagination_count',
    read: '1268b0a',
    sections: [
      {
        section: 'Limits and counts',
        sql: `
          create table people (id integer primary key);
          insert into people select generate_series(1, 18);
          create table bigtable (id integer primary key);
          insert into bigtable select generate_series(1, 3000);
          analyze bigtable;
          create table smalltable (id integer primary key);
          insert into smalltable select generate_series(1, 321);`,
        requests: [
          {
            request: 'GET /people',
            headers: { 'range-unit': 'items', range: '0-19' },
            response: {
              status: 200,
              headers: { 'content-range': '0-17/*', 'range-unit': 'items' },
              body: people,
            },
          },
          {
            request: 'GET /people',
            headers: { 'range-unit': 'items', range: '10-' },
            response: { status: 200, headers: { 'content-range': '10-17/*' }, body: people.slice(10) },
          },
          {
            request: 'GET /people?limit=15&offset=30',
            response: { status: 200, headers: { 'content-range': '*/*' }, body: [] },
          },
          {
            request: 'HEAD /bigtable',
            headers: { 'range-unit': 'items', range: '0-24', prefer: 'count=exact' },
            response: { status: 206, headers: { 'content-range': '0-24/3000', 'range-unit': 'items' }, text: '' },
            here: {
              demanded: 'in HTTP, ranges apply to GET only, and in PostgREST 14 too',
              instead: { status: 206, headers: { 'content-range': '0-999/3000', 'range-unit': 'items' }, text: '' },
            },
          },
          {
            request: 'HEAD /bigtable?limit=25',
            headers: { prefer: 'count=planned' },
            response: { status: 206, headers: { 'content-range': '0-24/3000' }, text: '' },
          },
          {
            request: 'HEAD /smalltable?limit=25',
            headers: { prefer: 'count=estimated' },
            response: { status: 206, headers: { 'content-range': '0-24/321' }, text: '' },
          },
          {
            request: 'HEAD /bigtable?limit=25',
            headers: { prefer: 'count=estimated' },
            response: { status: 206, headers: { 'content-range': '0-24/3000' }, text: '' },
          },
        ],
      },
    ],
  },
  {
    page: 'references/api/url_grammar',
    read: '944b02f',
    sections: [
      {
        section: 'Names and reserved characters',
        sql: `
          create table "موارد" (id integer primary key);
          insert into "موارد" values (1);
          create table "Order Items" ("Unit Price" integer);
          insert into "Order Items" values (100), (300);
          create table employees (name text);
          insert into employees values ('Hebdon,John'), ('Williams,Mary'), ('Other');
          create table vulnerabilities ("information.cpe" text);
          insert into vulnerabilities values ('an MS product'), ('another');
          create table marks (name text);
          insert into marks values ('Quote:"'), ('Backslash:\\'), ('plain');`,
        requests: [
          { request: 'GET /%D9%85%D9%88%D8%A7%D8%B1%D8%AF', response: { status: 200, body: [{ id: 1 }] } },
          {
            request: 'GET /Order%20Items?Unit%20Price=lt.200',
            response: { status: 200, body: [{ 'Unit Price': 100 }] },
          },
          {
            request: 'GET /employees?name=in.(%22Hebdon,John%22,%22Williams,Mary%22)',
            response: { status: 200, body: [{ name: 'Hebdon,John' }, { name: 'Williams,Mary' }] },
          },
          {
            request: 'GET /vulnerabilities?%22information.cpe%22=like.*MS*',
            response: { status: 200, body: [{ 'information.cpe': 'an MS product' }] },
          },
          {
            request: 'GET /marks?name=in.(%22Quote:%5C%22%22,%22Backslash:%5C%5C%22)',
            response: { status: 200, body: [{ name: 'Quote:"' }, { name: 'Backslash:\\' }] },
          },
        ],
      },
    ],
  },
  {
    page: 'references/api/schemas',
    read: '944b02f',
    sections: [
      {
        section: 'Multiple schemas',
        // A home is one schema, so the schemas of the interface are parts of names.
        sql: `
          create table items (id integer primary key);
          create table "tenant2.items" (id integer primary key);
          insert into items values (10);`,
        settings: { db_schemas: ['public', 'tenant2'] },
        requests: [
          {
            request: 'GET /items',
            headers: { 'accept-profile': 'tenant2' },
            response: { status: 200, body: [] },
          },
          {
            request: 'POST /items',
            headers: { 'content-profile': 'tenant2' },
            body: { id: 1 },
            response: {
              status: 201,
              text: '',
              stored: { 'select * from "tenant2.items"': [{ id: 1 }], 'select * from items': [{ id: 10 }] },
            },
          },
          {
            request: 'GET /items',
            headers: { 'accept-profile': 'tenant3' },
            response: {
              status: 406,
              body: {
                code: 'PGRST106',
                details: null,
                hint: 'Only the following schemas are exposed: public, tenant2',
                message: 'Invalid schema: tenant3',
              },
            },
            correction: 'message and hint are those of version 14; the page shows the message of version 12',
          },
        ],
      },
    ],
  },
  {
    page: 'references/api/openapi',
    read: 'fc635d1, and a later version with db-root-spec',
    sections: [
      {
        section: 'The root',
        sql: 'create table monotremes (has_venomous_claw boolean);',
        requests: [
          {
            request: 'GET /',
            response: { status: 200, text: /^\{"swagger":"2\.0".*"\/monotremes"/ },
          },
        ],
      },
      {
        section: 'Comments',
        sql: `
          comment on table monotremes is E'Freakish mammals\\n\\nlay the best eggs for breakfast';
          comment on column monotremes.has_venomous_claw is 'Sometimes breakfast is not worth it';`,
        requests: [
          {
            request: 'GET /',
            response: { status: 200, text: /"description":"Sometimes breakfast is not worth it"/ },
          },
          {
            request: 'GET /',
            response: { status: 200, text: /"summary":"Freakish mammals"/ },
          },
        ],
      },
      {
        section: 'A description of your own',
        sql: `
          create function root() returns json language sql
            as $$ select '{"swagger": "2.0", "info": {"title": "Overridden", "description": "My own"}}'::json $$;`,
        settings: { db_root_spec: 'root' },
        requests: [
          {
            request: 'GET /',
            response: {
              status: 200,
              body: { swagger: '2.0', info: { title: 'Overridden', description: 'My own' } },
            },
          },
        ],
      },
    ],
  },
  {
    page: 'references/api/options',
    read: '2a95acd',
    sections: [
      {
        section: 'Allowed methods',
        sql: 'create table people (id integer primary key);',
        requests: [
          {
            request: 'OPTIONS /people',
            response: { status: 200, headers: { allow: 'OPTIONS,GET,HEAD,POST,PUT,PATCH,DELETE' } },
          },
        ],
      },
    ],
  },
  {
    page: 'references/api/cors',
    read: '2a95acd',
    sections: [
      {
        section: 'A preflight',
        sql: 'create table items (id integer primary key);',
        requests: [
          {
            request: 'OPTIONS /items',
            headers: {
              origin: 'http://example.com',
              'access-control-request-method': 'POST',
              'access-control-request-headers': 'Content-Type',
            },
            response: {
              status: 200,
              headers: {
                'access-control-allow-origin': 'http://example.com',
                'access-control-allow-credentials': 'true',
                'access-control-allow-methods': 'GET, POST, PATCH, PUT, DELETE, OPTIONS, HEAD',
                'access-control-allow-headers':
                  'Authorization, Content-Type, Accept, Accept-Language, Content-Language',
                'access-control-max-age': '86400',
              },
            },
            here: {
              demanded: 'the gateway and all services respond to preflights in one form',
              instead: { status: 204, headers: { 'access-control-allow-origin': '*' } },
            },
          },
        ],
      },
    ],
  },
]
