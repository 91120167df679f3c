/** Schema of the control plane's own functions in a database of homes. Tenants may call only what is granted to them. */
export const controlSchema = 'tenantry'

/** Statements of PL/pgSQL that create the schema if it is missing. */
export const createControlSchemaSql = `if to_regnamespace('${controlSchema}') is null then create schema ${controlSchema}; end if;
    revoke all on schema ${controlSchema} from public;`
