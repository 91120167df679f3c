// Formats of responses, computed fields, and domain representations.
import type { Page } from './page.ts'

export const representations: readonly Page[] = [
  {
    page: 'references/api/resource_representation',
    read: '6db245a',
    sections: [
      {
        section: 'Formats',
        sql: `
          create table people (id integer primary key);
          create table items (id integer primary key);
          insert into items values (1), (2);
          create table projects (id integer primary key, name text, client_id integer, another_col text);
          insert into projects values (9, 'A', 1, null), (11, 'OSX', 1, 'val'), (12, 'ProjectX', null, null), (13, 'Y', null, null);`,
        requests: [
          {
            request: 'GET /people',
            headers: { accept: 'application/json' },
            response: { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body: [] },
          },
          {
            request: 'GET /people',
            headers: { accept: 'unknown/unknown' },
            response: {
              status: 406,
              body: {
                code: 'PGRST107',
                details: null,
                hint: null,
                message: 'None of these media types are available: unknown/unknown',
              },
            },
            correction: 'the status is that of the page of errors',
          },
          { request: 'GET /items?id=eq.1', response: { status: 200, body: [{ id: 1 }] } },
          {
            request: 'GET /items?id=eq.1',
            headers: { accept: 'application/vnd.pgrst.object+json' },
            response: { status: 200, body: { id: 1 } },
          },
          {
            request: 'GET /items?id=eq.9',
            headers: { accept: 'application/vnd.pgrst.object+json' },
            response: {
              status: 406,
              body: {
                code: 'PGRST116',
                message: 'Cannot coerce the result to a single JSON object',
                details: 'The result contains 0 rows',
                hint: null,
              },
            },
          },
          {
            request: 'GET /projects?id=gt.10',
            response: {
              status: 200,
              body: [
                { id: 11, name: 'OSX', client_id: 1, another_col: 'val' },
                { id: 12, name: 'ProjectX', client_id: null, another_col: null },
                { id: 13, name: 'Y', client_id: null, another_col: null },
              ],
            },
          },
          {
            request: 'GET /projects?id=gt.10',
            headers: { accept: 'application/vnd.pgrst.array+json;nulls=stripped' },
            response: {
              status: 200,
              body: [
                { id: 11, name: 'OSX', client_id: 1, another_col: 'val' },
                { id: 12, name: 'ProjectX' },
                { id: 13, name: 'Y' },
              ],
            },
          },
        ],
      },
    ],
  },
  {
    page: 'references/api/computed_fields',
    read: '14de9f1',
    sections: [
      {
        section: 'Computed fields',
        sql: `
          create table people (first_name text, last_name text, job text);
          insert into people values ('Samuel', 'Beckett', 'novelist');
          create function full_name(people) returns text language sql as $$ select $1.first_name || ' ' || $1.last_name $$;`,
        requests: [
          {
            request: 'GET /people?full_name=fts.Beckett',
            response: { status: 200, body: [{ first_name: 'Samuel', last_name: 'Beckett', job: 'novelist' }] },
          },
          {
            request: 'GET /people?select=full_name,job',
            response: { status: 200, body: [{ full_name: 'Samuel Beckett', job: 'novelist' }] },
          },
          {
            request: 'GET /people?order=full_name.desc',
            response: { status: 200, body: [{ first_name: 'Samuel', last_name: 'Beckett', job: 'novelist' }] },
          },
        ],
      },
    ],
  },
  {
    page: 'references/api/domain_representations',
    read: 'cb5d80a',
    sections: [
      {
        section: 'Domain representations',
        sql: `
          create domain app_uuid as uuid;
          create table profiles (id app_uuid, name text);
          insert into profiles values ('846c4ffd-92ce-4de7-8d11-8e29929f4ec4', 'John Doe');
          create function shortened(app_uuid) returns json immutable language sql
            as $$ select to_json(encode(uuid_send($1), 'base64')) $$;
          create cast (app_uuid as json) with function shortened(app_uuid) as implicit;
          create function app_uuid(text) returns app_uuid immutable language sql
            as $$ select substring(decode($1, 'base64')::text from 3)::uuid $$;
          create cast (text as app_uuid) with function app_uuid(text) as implicit;
          create function app_uuid(json) returns app_uuid immutable language sql as $$ select app_uuid($1 #>> '{}') $$;
          create cast (json as app_uuid) with function app_uuid(json) as implicit;`,
        requests: [
          {
            request: 'GET /profiles',
            headers: { accept: 'application/json' },
            response: { status: 200, body: [{ id: 'hGxP/ZLOTeeNEY4pkp9OxA==', name: 'John Doe' }] },
          },
          {
            request: 'GET /profiles?id=eq.hGxP/ZLOTeeNEY4pkp9OxA==',
            headers: { accept: 'application/json' },
            response: { status: 200, body: [{ id: 'hGxP/ZLOTeeNEY4pkp9OxA==', name: 'John Doe' }] },
            correction: 'the page omits the first characters of the value',
          },
          {
            request: 'POST /profiles',
            headers: { prefer: 'return=representation' },
            body: { id: 'zH7HbFJUTfy/GZpwuirpuQ==', name: 'Jane Doe' },
            response: {
              status: 201,
              body: [{ id: 'zH7HbFJUTfy/GZpwuirpuQ==', name: 'Jane Doe' }],
              stored: {
                'select id::text, name from profiles order by id': [
                  { id: '846c4ffd-92ce-4de7-8d11-8e29929f4ec4', name: 'John Doe' },
                  { id: 'cc7ec76c-5254-4dfc-bf19-9a70ba2ae9b9', name: 'Jane Doe' },
                ],
              },
            },
          },
        ],
      },
    ],
  },
]
