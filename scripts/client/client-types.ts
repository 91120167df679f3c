// The types of the operators' API, which openapi-typescript generates from the control plane's OpenAPI document.
import openapiTypescript, { astToString, type OpenAPI3 } from 'openapi-typescript'

/** File of the generated types, from the root of the repository. */
export const clientTypesFile = 'client/src/generated/openapi.ts'

const header = `// The types of the operators' API. \`npm run update:client\` generates this file from the control plane's OpenAPI document.
`

/** Returns the generated file for an OpenAPI document. @throws Error if the document is not valid */
export async function clientTypes(document: OpenAPI3): Promise<string> {
  const nodes = await openapiTypescript(document, { silent: true, emptyObjectsUnknown: true })
  return header + astToString(nodes)
}
