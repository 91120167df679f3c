// Repairs the service's part of a home to the structure of a pristine one next to it. Pure.
//
// It runs as the home's system role with an empty search path, and executes no code of the tenant: triggers, rules, policies,
// constraints and indexes that the tenant may have added to a table are dropped before anything is read or written.
// Rows are never deleted. Violations that cannot be repaired remain, and `home_problems()` lists them.
import { homeRoles, pristineSchema } from './home-roles.ts'
import { identifier, literal } from '../platform/identifiers.ts'

/** Setting in which a repair stores the names of lost tables, one a line. */
const lostSetting = 'tenantry.lost'

export function repairHomeSql(homeId: string): string {
  const fresh = pristineSchema(homeId)
  const names = { home: literal(homeId), fresh: literal(fresh), owner: literal(homeRoles(homeId).owner) }
  return `do $repair$
declare
  home constant name := ${names.home};
  fresh constant name := ${names.fresh};
  -- Definitions by kind and name: the wanted and the present ones.
  wanted jsonb;
  present jsonb;
  tables name[];
  made text[] := '{}';
  is_new boolean;
  item record;
  setting record;
  list text;
  store text;
begin
  tables := array(select relname from pg_class where relnamespace = fresh::regnamespace and relkind = 'r');
  is_new := not exists (select from pg_class where relnamespace = home::regnamespace and relkind = 'r' and relname = any (tables));
  wanted := (select coalesce(jsonb_object_agg(kind || ' ' || name, definition), '{}')
    from ${identifier(fresh)}.home_structure where kind <> 'store');

  ${functionsSql(homeId)}
  ${tablesSql(homeId)}
  ${extrasSql}
  ${columnsSql}
  ${partsSql}
  ${privilegesSql}
  ${rowsSql(homeId)}
end $repair$`
}

/**
 * Returns SQL that reports the session's last repair: lines `lost|table` and `remaining|violation`.
 * @param violations a query for the home's violations, in a column `problem`
 */
export function repairReportSql(violations: string): string {
  return (
    `select 'lost|' || name as report` +
    ` from unnest(string_to_array(nullif(current_setting('${lostSetting}', true), ''), E'\\n')) as lost (name)` +
    ` union all select 'remaining|' || problem from (${violations}) as remaining`
  )
}

/** Returns SQL that reads the home's definitions into `present`. */
function readPresentSql(homeId: string): string {
  const describe = `${identifier(pristineSchema(homeId))}.home_structure_of(home, tables)`
  return `present := (select coalesce(jsonb_object_agg(kind || ' ' || name, definition), '{}') from ${describe});`
}

const functionsSql = (homeId: string) => `${readPresentSql(homeId)}
  for item in
    select p.oid, format('function %s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)) as key,
      p.proname, pg_get_function_identity_arguments(p.oid) as arguments
    from pg_proc p where p.pronamespace = home::regnamespace and pg_get_userbyid(p.proowner) = current_user
  loop
    if not wanted ? item.key then execute format('drop function %I.%I(%s) cascade', home, item.proname, item.arguments); end if;
  end loop;
  for item in
    select format('function %s(%s)', p.proname, pg_get_function_identity_arguments(p.oid)) as key,
      p.proname, pg_get_function_identity_arguments(p.oid) as arguments,
      replace(pg_get_functiondef(p.oid), fresh, home) as definition
    from pg_proc p where p.pronamespace = fresh::regnamespace
  loop
    continue when wanted -> item.key = present -> item.key;
    begin
      execute item.definition;
    exception when invalid_function_definition then
      execute format('drop function %I.%I(%s) cascade', home, item.proname, item.arguments);
      execute item.definition;
    end;
    execute format('alter function %I.%I(%s) security invoker', home, item.proname, item.arguments);
  end loop;`

const tablesSql = (
  homeId: string,
) => `for item in select relname from pg_class where relnamespace = fresh::regnamespace and relkind = 'r' order by relname loop
    continue when to_regclass(format('%I.%I', home, item.relname)) is not null;
    execute format('create table %I.%I (like %I.%I including defaults including generated including identity' ||
      ' including constraints including storage)', home, item.relname, fresh, item.relname);
    list := (select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
      where attrelid = format('%I.%I', fresh, item.relname)::regclass and attnum > 0 and not attisdropped and attgenerated = '');
    -- The pristine home's rows of this table belong to its own bucket.
    if is_new or item.relname <> 'storage_bucket_counters' then
      execute format('insert into %I.%I (%s) overriding system value select %s from %I.%I',
        home, item.relname, list, list, fresh, item.relname);
    end if;
    made := made || item.relname::text;
  end loop;
  if not is_new then perform set_config('${lostSetting}', array_to_string(array_remove(made, 'home_structure'), E'\\n'), false); end if;
  ${readPresentSql(homeId)}`

/** SQL that drops objects whose definition is not wanted. */
const extrasSql = `for item in
    select format('trigger %s.%s', c.relname, t.tgname) as key,
      format('drop trigger %I on %I.%I', t.tgname, home, c.relname) as command
    from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = home::regnamespace and c.relname = any (tables) and not t.tgisinternal
    union all
    select format('rule %s.%s', c.relname, w.rulename), format('drop rule %I on %I.%I', w.rulename, home, c.relname)
    from pg_rewrite w join pg_class c on c.oid = w.ev_class where c.relnamespace = home::regnamespace and c.relname = any (tables)
    union all
    select format('policy %s.%s', c.relname, p.polname), format('drop policy %I on %I.%I', p.polname, home, c.relname)
    from pg_policy p join pg_class c on c.oid = p.polrelid where c.relnamespace = home::regnamespace and c.relname = any (tables)
    union all
    select format('constraint %s.%s', c.relname, n.conname), format('alter table %I.%I drop constraint %I', home, c.relname, n.conname)
    from pg_constraint n join pg_class c on c.oid = n.conrelid
    where c.relnamespace = home::regnamespace and c.relname = any (tables) and n.contype <> 'n'
    union all
    select format('index %s.%s', c.relname, i.relname), format('drop index %I.%I', home, i.relname)
    from pg_index x join pg_class c on c.oid = x.indrelid join pg_class i on i.oid = x.indexrelid
    where c.relnamespace = home::regnamespace and c.relname = any (tables)
      and not exists (select from pg_constraint where conindid = x.indexrelid and contype in ('p', 'u', 'x'))
  loop
    continue when wanted -> item.key = present -> item.key;
    begin
      execute item.command;
      present := present - item.key;
    exception when dependent_objects_still_exist then null;
    end;
  end loop;`

const columnsSql = `for item in
    select c.relname, a.attname, a.attidentity, a.attgenerated, a.attnotnull, a.atthasdef,
      format('column %s.%s', c.relname, a.attname) as key
    from pg_attribute a join pg_class c on c.oid = a.attrelid
    where c.relnamespace = home::regnamespace and c.relname = any (tables) and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
  loop
    -- An added column stays with its content, without its constraints and defaults.
    continue when wanted ? item.key;
    begin
      if item.attgenerated = 'v' then execute format('alter table %I.%I drop column %I', home, item.relname, item.attname);
      elsif item.attgenerated = 's' then
        execute format('alter table %I.%I alter column %I drop expression', home, item.relname, item.attname);
      end if;
      if item.attgenerated <> 'v' then
        if item.attidentity <> '' then
          execute format('alter table %I.%I alter column %I drop identity', home, item.relname, item.attname);
        end if;
        execute format('alter table %I.%I alter column %I drop default, alter column %I drop not null',
          home, item.relname, item.attname, item.attname);
      end if;
    exception when others then null;
    end;
  end loop;
  for item in
    select c.relname, a.attname, a.attnotnull, a.attgenerated, a.attidentity,
      format_type(a.atttypid, a.atttypmod) as type, pg_get_expr(d.adbin, d.adrelid) as expression,
      (select format(' collate %I.%I', n.nspname, l.collname)
        from pg_collation l join pg_namespace n on n.oid = l.collnamespace
        where l.oid = a.attcollation and l.collname <> 'default') as collation,
      format('column %s.%s', c.relname, a.attname) as key, h.attnum is not null as is_there,
      h.attnotnull as was_not_null, h.attidentity as was_identity, h.atthasdef as had_default
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      left join pg_attrdef d on (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
      left join pg_attribute h on h.attrelid = to_regclass(format('%I.%I', home, c.relname))
        and h.attname = a.attname and not h.attisdropped
    where c.relnamespace = fresh::regnamespace and c.relkind = 'r'
  loop
    continue when wanted -> item.key = present -> item.key;
    begin
      if not item.is_there then
        execute format('alter table %I.%I add column %I %s%s%s%s', home, item.relname, item.attname, item.type, item.collation,
          case when item.attgenerated = 's' then format(' generated always as (%s) stored', item.expression)
            when item.attidentity <> '' then ' generated always as identity'
            when item.expression is not null then ' default ' || item.expression end,
          case when item.attnotnull then ' not null' end);
      elsif item.attgenerated = '' then
        if item.attidentity = '' and item.was_identity <> '' then
          execute format('alter table %I.%I alter column %I drop identity', home, item.relname, item.attname);
        end if;
        if item.expression is not null then
          execute format('alter table %I.%I alter column %I set default %s',
            home, item.relname, item.attname, item.expression);
        elsif item.had_default then execute format('alter table %I.%I alter column %I drop default', home, item.relname, item.attname);
        end if;
        if item.attnotnull <> item.was_not_null then
          execute format('alter table %I.%I alter column %I %s not null', home, item.relname, item.attname,
            case when item.attnotnull then 'set' else 'drop' end);
        end if;
        if item.attidentity <> '' and item.was_identity = '' then
          execute format('alter table %I.%I alter column %I add generated always as identity', home, item.relname, item.attname);
          execute format('select setval(pg_get_serial_sequence(%L, %L), coalesce(max(%I), 0) + 1, false) from %I.%I',
            format('%I.%I', home, item.relname), item.attname, item.attname, home, item.relname);
        end if;
      end if;
    exception when others then null;
    end;
  end loop;`

/** SQL that adds missing objects. Rows that violate a constraint stay; the constraint applies to new ones. */
const partsSql = `for item in
    select 1 as step, format('constraint %s.%s', c.relname, n.conname) as key,
      format('alter table %I.%I add constraint %I %s', home, c.relname, n.conname,
        replace(pg_get_constraintdef(n.oid), fresh, home)) as command,
      n.contype in ('c', 'f') as may_wait, n.contype = 'f' as is_last
    from pg_constraint n join pg_class c on c.oid = n.conrelid
    where c.relnamespace = fresh::regnamespace and n.contype <> 'n'
    union all
    select 2, format('index %s.%s', c.relname, i.relname), replace(pg_get_indexdef(i.oid), fresh, home), false, false
    from pg_index x join pg_class c on c.oid = x.indrelid join pg_class i on i.oid = x.indexrelid
    where c.relnamespace = fresh::regnamespace and c.relkind = 'r'
      and not exists (select from pg_constraint where conindid = x.indexrelid and contype in ('p', 'u', 'x'))
    union all
    select 4, format('policy %s.%s', c.relname, p.polname),
      format('create policy %I on %I.%I as %s for %s%s%s', p.polname, home, c.relname,
        case when p.polpermissive then 'permissive' else 'restrictive' end,
        case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end,
        replace(' using (' || pg_get_expr(p.polqual, p.polrelid) || ')', fresh || '.', home || '.'),
        replace(' with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', fresh || '.', home || '.')),
      false, false
    from pg_policy p join pg_class c on c.oid = p.polrelid where c.relnamespace = fresh::regnamespace
    union all
    select 5, format('trigger %s.%s', c.relname, t.tgname), replace(pg_get_triggerdef(t.oid), fresh, home), false, false
    from pg_trigger t join pg_class c on c.oid = t.tgrelid where c.relnamespace = fresh::regnamespace and not t.tgisinternal
    order by step, is_last, key
  loop
    continue when wanted -> item.key = present -> item.key;
    begin
      execute item.command;
    exception
      when check_violation or foreign_key_violation then
        if item.may_wait then execute item.command || ' not valid'; end if;
      when others then null;
    end;
  end loop;
  for item in select c.relname, c.relrowsecurity, c.relforcerowsecurity, c.reloptions, h.reloptions as found_options
    from pg_class c
      join pg_class h on h.relnamespace = home::regnamespace and h.relname = c.relname and h.relkind = 'r'
    where c.relnamespace = fresh::regnamespace and c.relkind = 'r'
  loop
    continue when wanted -> ('table ' || item.relname) is not distinct from present -> ('table ' || item.relname);
    execute format('alter table %I.%I %s row level security, %s row level security', home, item.relname,
      case when item.relrowsecurity then 'enable' else 'disable' end, case when item.relforcerowsecurity then 'force' else 'no force' end);
    for setting in select split_part(given, '=', 1) as name from unnest(item.found_options) as given loop
      execute format('alter table %I.%I reset (%I)', home, item.relname, setting.name);
    end loop;
    for setting in
      select split_part(given, '=', 1) as name, split_part(given, '=', 2) as value from unnest(item.reloptions) as given
    loop
      execute format('alter table %I.%I set (%I = %s)', home, item.relname, setting.name, setting.value);
    end loop;
  end loop;`

/** SQL that restores privileges. Both schemas use the same roles. */
const privilegesSql = `for item in
    select distinct h.oid, h.relname, coalesce(quote_ident(g.rolname), 'public') as grantee
    from pg_class h, aclexplode(coalesce(h.relacl, acldefault('r', h.relowner))) e left join pg_roles g on g.oid = e.grantee
    where h.relnamespace = home::regnamespace and h.relname = any (tables) and h.relkind = 'r' and e.grantee <> h.relowner
  loop
    execute format('revoke all on %I.%I from %s', home, item.relname, item.grantee);
  end loop;
  for item in
    select c.relname, coalesce(quote_ident(g.rolname), 'public') as grantee, string_agg(e.privilege_type, ', ') as privileges
    from pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) e left join pg_roles g on g.oid = e.grantee
    where c.relnamespace = fresh::regnamespace and c.relkind = 'r' group by 1, 2
  loop
    execute format('grant %s on %I.%I to %s', item.privileges, home, item.relname, item.grantee);
  end loop;`

/** SQL that restores the service's own rows, and counters that differ from the stored objects. */
const rowsSql = (homeId: string) => {
  const [home, fresh] = [identifier(homeId), identifier(pristineSchema(homeId))]
  return `insert into ${home}.home_migrations select * from ${fresh}.home_migrations on conflict (version) do nothing;
  store := (select definition from ${home}.home_structure where kind = 'store');
  delete from ${home}.home_structure where kind <> 'store';
  insert into ${home}.home_structure select * from ${fresh}.home_structure where kind <> 'store' or store is null;
  if store is not null and made && '{storage_usage}' then update ${home}.storage_usage set store_id = store::uuid; end if;
  if store is null or made && '{home_structure}' then
    update ${home}.home_structure set definition = (select store_id::text from ${home}.storage_usage) where kind = 'store';
  end if;
  if not is_new and made && '{storage_buckets,storage_objects,storage_usage,storage_bucket_counters,blob_intents}' then
    insert into ${home}.storage_bucket_counters as k (bucket_id, file_count, total_size)
      select b.id, count(o.id), coalesce(sum(o.size), 0)
      from ${home}.storage_buckets b left join ${home}.storage_objects o on o.bucket_id = b.id group by b.id
      on conflict (bucket_id) do update set file_count = excluded.file_count, total_size = excluded.total_size;
    if not exists (select from ${home}.storage_usage) then insert into ${home}.storage_usage default values; end if;
    update ${home}.storage_usage set (file_count, file_bytes) = (select count(*), coalesce(sum(size), 0) from ${home}.storage_objects),
      reserved_bytes = (select coalesce(sum(reserved), 0) from ${home}.blob_intents);
  end if;`
}
