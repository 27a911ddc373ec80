/** Input against its schema: the same code for the core's routes, and for a plugin's in the plugin's own realm. */
export { validate } from '@portico/sdk/host';
