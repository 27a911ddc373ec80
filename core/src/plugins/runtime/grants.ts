/** What one plugin may do. The test kit holds a plugin to the same, so it lies at the boundary. */
export { Grants } from '@portico/sdk/host';
