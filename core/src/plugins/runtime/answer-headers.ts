/** Headers of a plugin's answers. The test kit answers with the same, so they lie at the boundary. */
export { allowedHeaders, sandboxHeaders } from '@portico/sdk/host';
