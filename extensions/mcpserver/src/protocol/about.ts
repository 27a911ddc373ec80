/** How the server calls itself. */
export const aboutServer = (version: string) => ({ name: 'portico', title: 'Portico', version });
