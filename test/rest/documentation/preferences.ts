// The header `Prefer`.
import type { Page } from './page.ts'

const json = 'application/json; charset=utf-8'

export const preferences: Page = {
  page: 'references/api/preferences',
  read: 'b341e59',
  sections: [
    {
      section: 'Handling',
      sql: 'create table projects (id integer primary key, name text);',
      requests: [
        {
          request: 'GET /projects',
          headers: { prefer: 'handling=strict, foo, bar' },
          response: {
            status: 400,
            headers: { 'content-type': json },
            body: {
              code: 'PGRST122',
              message: 'Invalid preferences given with handling=strict',
              details: 'Invalid preferences: foo, bar',
              hint: null,
            },
          },
        },
        {
          request: 'GET /projects',
          headers: { prefer: 'handling=lenient, foo, bar' },
          response: { status: 200, headers: { 'content-type': json } },
        },
      ],
    },
    {
      section: 'Timezone',
      sql: `
        create table timestamps (t timestamptz);
        insert into timestamps values
          ('2023-10-18T12:37:59.611Z'), ('2023-10-18T14:37:59.611Z'), ('2023-10-18T16:37:59.611Z');`,
      requests: [
        {
          request: 'GET /timestamps',
          headers: { prefer: 'timezone=America/Los_Angeles' },
          response: {
            status: 200,
            headers: { 'content-type': json, 'preference-applied': 'timezone=America/Los_Angeles' },
            body: [
              { t: '2023-10-18T05:37:59.611-07:00' },
              { t: '2023-10-18T07:37:59.611-07:00' },
              { t: '2023-10-18T09:37:59.611-07:00' },
            ],
          },
        },
        {
          request: 'GET /timestamps',
          headers: { prefer: 'timezone=Jupiter/Red_Spot' },
          response: {
            status: 200,
            headers: { 'content-type': json, 'preference-applied': undefined },
            body: [
              { t: '2023-10-18T12:37:59.611+00:00' },
              { t: '2023-10-18T14:37:59.611+00:00' },
              { t: '2023-10-18T16:37:59.611+00:00' },
            ],
          },
        },
        {
          request: 'GET /timestamps',
          headers: { prefer: 'handling=strict, timezone=Jupiter/Red_Spot' },
          response: { status: 400 },
        },
      ],
    },
    {
      section: 'Return, transactions, affected rows',
      sql: `
        create table items (id integer primary key);
        insert into items select generate_series(1, 14);`,
      requests: [
        {
          request: 'POST /projects',
          headers: { prefer: 'return=headers-only' },
          body: { id: 33, name: 'x' },
          response: {
            status: 201,
            headers: { location: '/rest/v1/projects?id=eq.33', 'preference-applied': 'return=headers-only' },
            text: '',
          },
          correction: 'the page shows the location of another record, and paths begin with /rest/v1 here',
        },
        {
          request: 'POST /projects',
          headers: { prefer: 'return=representation' },
          body: { id: 34, name: 'x' },
          response: {
            status: 201,
            headers: { 'preference-applied': 'return=representation' },
            body: [{ id: 34, name: 'x' }],
          },
          correction: 'the page inserts the record of the previous request again',
        },
        {
          request: 'POST /projects',
          headers: { prefer: 'tx=rollback, return=representation' },
          body: { id: 35, name: 'Project X' },
          response: {
            status: 201,
            headers: { 'preference-applied': 'tx=rollback, return=representation' },
            body: [{ id: 35, name: 'Project X' }],
            stored: { 'select id from projects where id = 35': [] },
          },
          correction: 'the page shows the status 200, and no array',
        },
        {
          request: 'DELETE /items?id=lt.15',
          headers: { 'content-type': 'application/json', prefer: 'handling=strict, max-affected=10' },
          response: {
            status: 400,
            body: {
              code: 'PGRST124',
              message: 'Query result exceeds max-affected preference constraint',
              details: 'The query affects 14 rows',
              hint: null,
            },
          },
        },
      ],
    },
  ],
}
