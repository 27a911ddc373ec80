/** Settings of plugins as they are kept. The test kit keeps them in the same way, so that lies at the boundary. */
export { labelOf, mergeSettings, openSettings, sealSettings, viewSettings } from '@portico/sdk/host';
