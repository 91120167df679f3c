// Reading from tables and views.
import type { Page } from './page.ts'

const plan = { accept: 'application/vnd.pgrst.plan' }
const [ann, bob, cid, dee, eve] = [
  { first_name: 'Ann', last_name: 'Olsen', age: 12, height: 150, student: true, grade: 95 },
  { first_name: 'Bob', last_name: 'Parker', age: 14, height: 160, student: true, grade: 92 },
  { first_name: 'Cid', last_name: 'Quinn', age: 18, height: 170, student: true, grade: 80 },
  { first_name: 'Dee', last_name: 'Owen', age: 20, height: 165, student: false, grade: 85 },
  { first_name: 'Eve', last_name: 'Norton', age: null, height: 180, student: true, grade: 91 },
] as const
const allPeople = [ann, bob, cid, dee, eve]

export const tablesAndViewsReading: Page = {
  page: 'references/api/tables_views',
  read: '1833966',
  sections: [
    {
      section: 'Horizontal filtering, operators and ordering',
      sql: `
        create table people (
          first_name text, last_name text, age integer, height integer, student boolean, grade integer);
        insert into people values
          ('Ann', 'Olsen', 12, 150, true, 95), ('Bob', 'Parker', 14, 160, true, 92), ('Cid', 'Quinn', 18, 170, true, 80),
          ('Dee', 'Owen', 20, 165, false, 85), ('Eve', 'Norton', null, 180, true, 91);
        create table stories (id integer primary key, pinned boolean, published timestamptz);
        insert into stories values (1, false, now()), (2, true, '2020-01-01'), (3, false, '2020-01-01');
        create view fresh_stories as select id, pinned from stories
          where pinned or published > now() - interval '1 day' order by pinned desc, published desc;
        create table survey (id integer primary key, age_range int4range);
        insert into survey values (1, '[10,18)'), (2, '[21,30)'), (3, '[25,40)'), (4, '[40,50)');`,
      requests: [
        { request: 'GET /people', response: { status: 200, body: allPeople } },
        { request: 'GET /people?age=lt.13', response: { status: 200, body: [ann] } },
        { request: 'GET /people?age=gte.18&student=is.true', response: { status: 200, body: [cid] } },
        {
          request: 'GET /fresh_stories',
          response: {
            status: 200,
            body: [
              { id: 2, pinned: true },
              { id: 1, pinned: false },
            ],
          },
        },
        { request: 'GET /people?or=(age.lt.18,age.gt.21)', response: { status: 200, body: [ann, bob] } },
        {
          request: 'GET /people?grade=gte.90&student=is.true&or=(age.eq.14,not.and(age.gte.11,age.lte.17))',
          response: { status: 200, body: [bob] },
        },
        {
          request: 'GET /survey?or=(age_range.adj."[18,21)",age_range.cs."[30,35]")',
          response: {
            status: 200,
            body: [
              { id: 1, age_range: '[10,18)' },
              { id: 2, age_range: '[21,30)' },
              { id: 3, age_range: '[25,40)' },
            ],
          },
        },
        { request: 'GET /people?last_name=like(any).{O*,P*}', response: { status: 200, body: [ann, bob, dee] } },
        { request: 'GET /people?last_name=like(all).{O*,*n}', response: { status: 200, body: [ann, dee] } },
        {
          request: 'GET /people?order=age.desc,height.asc',
          response: { status: 200, body: [eve, dee, cid, bob, ann] },
        },
        { request: 'GET /people?order=age', response: { status: 200, body: allPeople } },
        { request: 'GET /people?order=age.nullsfirst', response: { status: 200, body: [eve, ann, bob, cid, dee] } },
        { request: 'GET /people?order=age.desc.nullslast', response: { status: 200, body: [dee, cid, bob, ann, eve] } },
      ],
    },
    {
      section: 'The examples in the table of operators',
      sql: `
        create table numbers (a integer);
        insert into numbers values (-1), (1), (2), (3), (500);
        create table texts (a text);
        insert into texts values ('hi,there'), ('yes,you'), ('hi');
        create table sets (tags text[], "values" integer[], arr integer[], period daterange, range int4range);
        insert into sets values
          ('{example,new,more}', '{1,2}', '{3}', '[2016-12-01,2017-02-01)', '(1,5)'),
          ('{example}', '{3,4}', '{2}', '[2018-01-01,2018-02-01)', '[10,20)'),
          ('{new}', '{5}', '{4}', '[2019-01-01,2019-02-01)', '[-9,1)');`,
      requests: [
        { request: 'GET /numbers?a=in.(1,2,3)', response: { status: 200, body: [{ a: 1 }, { a: 2 }, { a: 3 }] } },
        {
          request: 'GET /texts?a=in.("hi,there","yes,you")',
          response: { status: 200, body: [{ a: 'hi,there' }, { a: 'yes,you' }] },
        },
        {
          request: 'GET /sets?select=arr&tags=cs.{example, new}',
          response: { status: 200, body: [{ arr: [3] }] },
        },
        {
          request: 'GET /sets?select=arr&values=cd.{1,2,3}',
          response: { status: 200, body: [{ arr: [3] }] },
        },
        {
          request: 'GET /sets?select=arr&period=ov.[2017-01-01,2017-06-30]',
          response: { status: 200, body: [{ arr: [3] }] },
        },
        {
          request: 'GET /sets?select=arr&arr=ov.{1,3}',
          response: { status: 200, body: [{ arr: [3] }] },
        },
        { request: 'GET /sets?select=arr&range=sl.(1,10)', response: { status: 200, body: [{ arr: [4] }] } },
        {
          request: 'GET /sets?select=arr&range=nxr.(1,10)',
          response: { status: 200, body: [{ arr: [3] }, { arr: [4] }] },
        },
        { request: 'GET /sets?select=arr&range=adj.(1,10)', response: { status: 200, body: [{ arr: [2] }] } },
        {
          request: 'GET /numbers?a=not.eq.2',
          response: { status: 200, body: [{ a: -1 }, { a: 1 }, { a: 3 }, { a: 500 }] },
        },
        {
          request: 'GET /numbers?not.and=(a.gte.0,a.lte.100)',
          response: { status: 200, body: [{ a: -1 }, { a: 500 }] },
        },
      ],
    },
    {
      section: 'Full-text search',
      sql: `
        create table tsearch (my_tsv tsvector, my_text_column text, my_json_column json);
        insert into tsearch values
          (to_tsvector('french', 'c''est amusant'), 'c''est amusant', '{"a": "amusant"}'),
          (to_tsvector('english', 'the fat cats'), 'the fat cats', '{"a": "the fat cats"}');`,
      requests: [
        {
          request: 'GET /tsearch?my_tsv=fts(french).amusant',
          response: {
            status: 200,
            body: [{ my_tsv: "'amus':3", my_text_column: "c'est amusant", my_json_column: { a: 'amusant' } }],
          },
        },
        {
          request: 'GET /tsearch?select=my_text_column&my_tsv=plfts.The%20Fat%20Cats',
          response: { status: 200, body: [{ my_text_column: 'the fat cats' }] },
        },
        {
          request: 'GET /tsearch?select=my_text_column&my_tsv=not.phfts(english).The%20Fat%20Cats',
          response: { status: 200, body: [{ my_text_column: "c'est amusant" }] },
        },
        {
          request: 'GET /tsearch?select=my_text_column&my_tsv=not.wfts(french).amusant',
          response: { status: 200, body: [{ my_text_column: 'the fat cats' }] },
        },
        {
          request: 'GET /tsearch?select=my_text_column&my_text_column=fts(french).amusant',
          response: { status: 200, body: [{ my_text_column: "c'est amusant" }] },
        },
        {
          request: 'GET /tsearch?select=my_text_column&my_json_column=not.phfts(english).The%20Fat%20Cats',
          response: { status: 200, body: [{ my_text_column: "c'est amusant" }] },
        },
      ],
    },
    {
      section: 'Vertical filtering, renaming and casts',
      sql: `
        drop table people;
        create table people (first_name text, age integer, full_name text, birth_date text, salary numeric(10,2));
        insert into people values
          ('John', 30, 'John Doe', '04/25/1988', 90000), ('Jane', 20, 'Jane Doe', '01/12/1998', 120000);`,
      requests: [
        {
          request: 'GET /people?select=first_name,age',
          response: {
            status: 200,
            body: [
              { first_name: 'John', age: 30 },
              { first_name: 'Jane', age: 20 },
            ],
          },
        },
        {
          request: 'GET /people?select=fullName:full_name,birthDate:birth_date',
          response: {
            status: 200,
            body: [
              { fullName: 'John Doe', birthDate: '04/25/1988' },
              { fullName: 'Jane Doe', birthDate: '01/12/1998' },
            ],
          },
        },
        {
          request: 'GET /people?select=full_name,salary::text',
          response: {
            status: 200,
            body: [
              { full_name: 'John Doe', salary: '90000.00' },
              { full_name: 'Jane Doe', salary: '120000.00' },
            ],
          },
        },
      ],
    },
    {
      section: 'JSON columns: paths',
      sql: `
        drop table people;
        create table people (id int, json_data json);
        insert into people values
          (1, '{"blood_type": "A-", "phones": [{"country_code": "61", "number": "917-929-5745"}]}'),
          (2, '{"blood_type": "O+", "phones": [
            {"country_code": "43", "number": "512-446-4988"}, {"country_code": "43", "number": "213-891-5979"}]}');`,
      requests: [
        {
          request: 'GET /people?select=id,json_data->>blood_type,json_data->phones',
          response: {
            status: 200,
            body: [
              { id: 1, blood_type: 'A-', phones: [{ country_code: '61', number: '917-929-5745' }] },
              {
                id: 2,
                blood_type: 'O+',
                phones: [
                  { country_code: '43', number: '512-446-4988' },
                  { country_code: '43', number: '213-891-5979' },
                ],
              },
            ],
          },
        },
        {
          request: 'GET /people?select=id,json_data->phones->0->>number',
          response: {
            status: 200,
            body: [
              { id: 1, number: '917-929-5745' },
              { id: 2, number: '512-446-4988' },
            ],
          },
        },
      ],
    },
    {
      section: 'JSON columns: filters',
      sql: `
        drop table people;
        create table people (id int, json_data jsonb);
        insert into people values (1, '{"blood_type": "A-"}'), (3, '{"blood_type": "A-"}'), (7, '{"blood_type": "A-"}'),
          (11, '{"age": 25}'), (12, '{"age": 30}'), (15, '{"age": 35}'), (16, '{"age": 7}');`,
      requests: [
        {
          request: 'GET /people?select=id,json_data->blood_type&json_data->>blood_type=eq.A-',
          response: {
            status: 200,
            body: [
              { id: 1, blood_type: 'A-' },
              { id: 3, blood_type: 'A-' },
              { id: 7, blood_type: 'A-' },
            ],
          },
        },
        {
          request: 'GET /people?select=id,json_data->age&json_data->age=gt.20',
          response: {
            status: 200,
            body: [
              { id: 11, age: 25 },
              { id: 12, age: 30 },
              { id: 15, age: 35 },
            ],
          },
          correction: 'the type of the column is jsonb, because json has no such operator',
        },
      ],
    },
    {
      section: 'JSON columns: order',
      sql: 'delete from people where id < 10 or id = 16;',
      requests: [
        {
          request: 'GET /people?select=id,json_data->age&order=json_data->>age.desc',
          response: {
            status: 200,
            body: [
              { id: 15, age: 35 },
              { id: 12, age: 30 },
              { id: 11, age: 25 },
            ],
          },
        },
      ],
    },
    {
      section: 'Composite and array columns',
      sql: `
        create type coordinates as (lat decimal(8,6), long decimal(9,6));
        create table countries (id int, location coordinates, languages text[]);
        insert into countries values (5, '(19.741755,-155.844437)', '{en,haw}'), (4, '(1.5,2.5)', '{fr}');`,
      requests: [
        {
          request:
            'GET /countries?select=id,location->>lat,location->>long,primary_language:languages->0&location->lat=gte.19',
          response: {
            status: 200,
            body: [{ id: 5, lat: '19.741755', long: '-155.844437', primary_language: 'en' }],
          },
        },
        {
          request: 'GET /countries?order=location->>lat',
          response: {
            status: 200,
            body: [
              { id: 4, location: { lat: 1.5, long: 2.5 }, languages: ['fr'] },
              { id: 5, location: { lat: 19.741755, long: -155.844437 }, languages: ['en', 'haw'] },
            ],
          },
        },
      ],
    },
    {
      section: 'Index usage',
      sql: `
        create table employees (id integer primary key, salary money);
        create index salary_idx on employees (salary);
        insert into employees select n, n from generate_series(1, 5000) n;`,
      requests: [
        {
          request: 'GET /employees?salary=eq.36000',
          as: 'service',
          headers: plan,
          response: { status: 200, text: /^Aggregate [^]*Index Cond: \(\(?salary = '\$36,000\.00'::money\)/ },
          correction: 'plans are enabled for the service role only',
        },
      ],
    },
  ],
}
