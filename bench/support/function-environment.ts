// The variables that the runtime passes to a function for a user's request, so that floors and peers give it the same work.
export const functionEnvironment = [
  'TENANTRY_FUNCTION=warm',
  'TENANTRY_INVOCATION_ID=3f1c2a1e-0b8f-4c57-9d5e-6a2b7c8d9e0f',
  'TENANTRY_TRIGGER=http',
  'TENANTRY_ROLE=authenticated',
  'TENANTRY_USER_ID=ada',
  'TENANTRY_METHOD=POST',
  'TENANTRY_QUERY=',
  'TENANTRY_CONTENT_TYPE=application/json',
  'TENANTRY_HEADERS={"content-type":"application/json"}',
]
