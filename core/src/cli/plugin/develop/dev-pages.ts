/** What `portico plugin dev` does for pages: it brings the panel's own, and writes the types of the operations that a plugin's page calls. */
import type { Manifest } from '@portico/registry';

import type { Panel } from '../../../panel.ts';
import { createOpenApi } from '../../../server/http/openapi/document.ts';
import { type OperationsDocument, operationTypes } from './operation-types.ts';
import type { StagedCopies } from './staged-copies.ts';

/** Lets the panel start the installed plugin that serves its pages. Call it before the panel starts. @returns whether there is one */
export async function addPages(panel: Panel, stage: StagedCopies, nodeModules: string): Promise<boolean> {
    const { found } = await panel.plugins.registry.discover([{ origin: 'node_modules', path: nodeModules }]);
    const pages = found.find(
        ({ result }) => 'plugin' in result && result.plugin.manifest.capabilities?.pages === true
    );
    if (pages === undefined || 'fault' in pages.result) {
        return false;
    }
    await stage.add(pages.folder);
    return true;
}

/** Writes the types where the plugin brings pages: those of its own operations, and of the ones that its pages use. */
export async function writePageTypes(
    panel: Panel,
    { name, contributes }: Manifest,
    stage: StagedCopies
): Promise<void> {
    const pages = contributes?.pages ?? [];
    if (pages.length > 0) {
        const openApi = createOpenApi({ servers: () => panel.gateway.servers(), version: '' });
        // What is sent is read, as a client reads it.
        const document = JSON.parse(openApi.text()?.body ?? '{}') as OperationsDocument;
        const used = new Set(pages.flatMap((page) => page.uses ?? []));
        await stage.writeTypes(operationTypes(document, (id) => id.startsWith(`${name}.`) || used.has(id)));
    }
}
