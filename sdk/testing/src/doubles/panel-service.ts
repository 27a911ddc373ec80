/** The panel itself as a plugin sees it by `ctx.panel`. */
import type { PanelPort } from '@portico/core/plugin-runtime';
import type { PanelListener, PanelRehearsal } from '@portico/sdk';

/** The test says where panel and engine listen, and how a rehearsal ends. */
export class TestPanelService {
    /** What `ctx.panel.url` gives. */
    url: string | null = null;
    /** Plugins that were removed with their data: `ctx.panel.hasPlugin` knows every other name. */
    readonly removed = new Set<string>();
    /** What `ctx.panel.listeners` gives; change it as the test needs. */
    readonly listeners: PanelListener[] = [
        { role: 'panel', protocol: 'tcp', address: '0.0.0.0', port: 39921 },
        { role: 'http', protocol: 'tcp', address: '::', port: 80 },
        { role: 'https', protocol: 'tcp', address: '::', port: 443 },
        { role: 'https', protocol: 'udp', address: '::', port: 443 }
    ];
    /** What `ctx.panel.folders` gives; change it as the test needs. */
    readonly folders: string[] = ['/var/lib/portico'];
    /** What `ctx.panel.rehearse` gives. */
    rehearsal: PanelRehearsal = {
        booted: true,
        message: null,
        readyMs: 800,
        hosts: 1,
        users: 1,
        plugins: 1,
        auditChain: true
    };
    /** Real paths of the folders that were rehearsed. */
    readonly rehearsed: string[] = [];

    /** The same as the runtime takes it. @internal */
    readonly port: PanelPort = {
        url: () => this.url,
        hasPlugin: async (name) => !this.removed.has(name),
        listeners: async () => this.listeners,
        folders: () => this.folders,
        rehearse: async (folder) => {
            this.rehearsed.push(folder);
            return this.rehearsal;
        }
    };
}
