// Media types by function and aggregate. Our tables have bytes where the page has geometries.
import type { Page } from './page.ts'

const twkb = { accept: 'application/vnd.twkb' }
const xml = '<line id="1" name="line-1">0102</line>\n<line id="2" name="line-2">0304</line>\n'
const rows = { status: 200, headers: { 'content-type': 'application/vnd.twkb' }, text: '\u0001\u0002\u0003\u0004' }

export const mediaTypes: readonly Page[] = [
  {
    page: 'references/api/media_type_handlers',
    read: 'da0b887',
    sections: [
      {
        section: 'A function, and an aggregate for a table',
        sql: `
          create table lines (id int primary key, name text, geom bytea);
          insert into lines values (1, 'line-1', '\\x0102'), (2, 'line-2', '\\x0304');
          create domain "application/vnd.twkb" as bytea;
          create function get_line(id int) returns "application/vnd.twkb" language sql
            as 'select geom from lines where id = get_line.id';
          create function twkb_handler_transition(state bytea, next lines) returns "application/vnd.twkb" language sql
            as 'select state || next.geom';
          create aggregate twkb_agg(lines) (
            initcond = '', stype = "application/vnd.twkb", sfunc = twkb_handler_transition);
          create function get_lines() returns setof lines language sql as 'select * from lines';`,
        requests: [
          {
            request: 'GET /rpc/get_line?id=1',
            headers: twkb,
            response: { ...rows, text: '\u0001\u0002' },
          },
          { request: 'GET /lines', headers: twkb, response: rows },
          {
            request: 'GET /rpc/get_lines',
            headers: twkb,
            response: rows,
            correction: 'the page omits the beginning of the path',
          },
        ],
      },
      {
        section: 'Overriding a builtin handler',
        sql: `
          create domain "text/csv" as text;
          create function bom_csv_trans(state text, next lines) returns "text/csv" language sql
            as $$ select state || next.id::text || ',' || next.name || ',' || encode(next.geom, 'hex') || E'\\n' $$;
          create function bom_csv_final(data "text/csv") returns "text/csv" language sql as $$
            select set_config('response.headers', '[{"Content-Disposition": "attachment; filename=\\"lines.csv\\""}]', true);
            select convert_from(decode('EFBBBF', 'hex'), 'UTF8') || (E'id,name,geom\\n' || data); $$;
          create aggregate bom_csv_agg(lines) (
            initcond = '', stype = "text/csv", sfunc = bom_csv_trans, finalfunc = bom_csv_final);`,
        requests: [
          {
            request: 'GET /lines',
            headers: { accept: 'text/csv' },
            response: {
              status: 200,
              headers: { 'content-type': /^text\/csv(;|$)/, 'content-disposition': 'attachment; filename="lines.csv"' },
              text: '\uFEFFid,name,geom\n1,line-1,0102\n2,line-2,0304\n',
            },
            correction: 'the type may state its charset',
          },
        ],
      },
      {
        section: 'The handler of any media type',
        sql: `
          create domain "*/*" as bytea;
          create view "lines.xml" as select * from lines;
          create function lines_xml_trans(state "*/*", next "lines.xml") returns "*/*" language sql as $$
            select state || convert_to(
              xmlelement(name line, xmlattributes(next.id as id, next.name as name), encode(next.geom, 'hex'))::text || E'\\n',
              'UTF8') $$;
          create function lines_xml_final(data "*/*") returns "*/*" language plpgsql as $$
            declare req_accept text := current_setting('request.headers', true)::json->>'accept';
            begin
              if req_accept is null or req_accept = '*/*' then
                perform set_config('response.headers', '[{"Content-Type": "text/xml"}]', true);
              elsif req_accept in ('application/xml', 'text/xml') then
                perform set_config('response.headers',
                  json_build_array(json_build_object('Content-Type', req_accept))::text, true);
              else
                raise sqlstate 'PT415' using message = 'Unsupported Media Type';
              end if;
              return data;
            end $$;
          create aggregate lines_xml_agg("lines.xml") (
            initcond = '', stype = "*/*", sfunc = lines_xml_trans, finalfunc = lines_xml_final);`,
        requests: [
          {
            request: 'GET /lines.xml',
            response: { status: 200, headers: { 'content-type': 'text/xml' }, text: xml },
          },
          {
            request: 'GET /lines.xml',
            headers: { accept: 'text/xml' },
            response: { status: 200, headers: { 'content-type': 'text/xml' }, text: xml },
          },
          {
            request: 'GET /lines.xml',
            headers: { accept: 'application/xml' },
            response: { status: 200, headers: { 'content-type': 'application/xml' }, text: xml },
            correction: 'the SQL of the page sets the type that the client accepts',
          },
          {
            request: 'GET /lines.xml',
            headers: { accept: 'unknown/media' },
            response: { status: 415, body: { message: 'Unsupported Media Type' } },
          },
        ],
      },
    ],
  },
  {
    page: 'how-tos/providing-images-for-img',
    read: 'a later version than 2a95acd, with media type handlers',
    sections: [
      {
        section: 'Two functions for fixed types',
        sql: `
          create table files (id int primary key, blob bytea);
          insert into files values (42, '\\x6162');
          create domain "application/octet-stream" as bytea;
          create function file(id int) returns "application/octet-stream" language sql
            as 'select blob from files where id = file.id';
          create domain "image/webp" as bytea;
          create function image(id int) returns "image/webp" language sql as 'select blob from files where id = image.id';`,
        requests: [
          {
            request: 'GET /rpc/file?id=42',
            headers: { accept: 'application/octet-stream' },
            response: { status: 200, headers: { 'content-type': 'application/octet-stream' }, text: 'ab' },
          },
          {
            request: 'GET /rpc/image?id=42',
            headers: { accept: 'image/webp' },
            response: { status: 200, headers: { 'content-type': 'image/webp' }, text: 'ab' },
            correction: 'the page omits the beginning of the path',
          },
        ],
      },
      {
        section: 'One function for all types',
        sql: `
          alter table files add column type text, add column name text;
          update files set type = 'image/png', name = 'cat.png';
          create domain "*/*" as bytea;
          drop function file;
          create function file(id int) returns "*/*" language plpgsql as $$
            declare headers text; declare blob bytea;
            begin
              select format('[{"Content-Type": "%s"},{"Content-Disposition": "inline; filename=\\"%s\\""},'
                '{"Cache-Control": "max-age=259200"}]', files.type, files.name)
              from files where files.id = file.id into headers;
              perform set_config('response.headers', headers, true);
              select files.blob from files where files.id = file.id into blob;
              if found then return blob;
              else raise sqlstate 'PT404' using message = 'NOT FOUND', detail = 'File not found',
                hint = format('%s seems to be an invalid file id', file.id);
              end if;
            end $$;`,
        requests: [
          {
            request: 'GET /rpc/file?id=42',
            response: {
              status: 200,
              headers: {
                'content-type': 'image/png',
                'content-disposition': 'inline; filename="cat.png"',
                'cache-control': 'max-age=259200',
              },
              text: 'ab',
            },
          },
        ],
      },
    ],
  },
]
