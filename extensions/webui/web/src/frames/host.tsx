/** The frame of a page that a plugin brings. It has no origin: all that it reaches is the bridge. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';

import { useMe } from '../api/queries.ts';
import type { BroughtPage } from '../schema/document.ts';
import { language } from '../words/language.ts';
import { Bridge, type FramePorts } from './bridge.ts';
import { contextOf, type FrameContext, onContext } from './context.ts';

/** A page that does not say hello so long after it was loaded is given up. */
const silentMs = 5_000;
/** One that is not even loaded after so long, too. */
const loadingMs = 30_000;
const firstHeight = 160;

/** Shows a page. @param onSilent - it does not answer: show something else in its place */
export function PluginFrame({
    plugin,
    page,
    host = null,
    location = '',
    fills = false,
    onSilent,
    onTitle = () => undefined,
    onLocation = () => undefined
}: {
    readonly plugin: string;
    readonly page: BroughtPage;
    readonly host?: number | null;
    /** The page's part of the panel's address. */
    readonly location?: string;
    /** Whether the frame is at least as high as the screen is. */
    readonly fills?: boolean;
    readonly onSilent: () => void;
    readonly onTitle?: (title: string) => void;
    readonly onLocation?: (location: string) => void;
}) {
    const element = useRef<HTMLIFrameElement>(null);
    const permissions = useMe()?.permissions ?? [];
    useBridge(element, { plugin, page, onSilent, onTitle, onLocation }, permissions, {
        place: page.place,
        host,
        location
    });
    return (
        <iframe
            ref={element}
            class={`brought ${fills ? 'fills' : ''}`}
            title={page.title}
            src={`${page.path}?lang=${language()}`}
            height={firstHeight}
            sandbox="allow-scripts"
            referrerpolicy="no-referrer"
        />
    );
}

interface Frame {
    readonly plugin: string;
    readonly page: BroughtPage;
    readonly onSilent: () => void;
    readonly onTitle: (title: string) => void;
    readonly onLocation: (location: string) => void;
}

/** Waits for the page's hello, hands it a port, and tells it what changes around it. */
function useBridge(
    element: { readonly current: HTMLIFrameElement | null },
    { plugin, page, onSilent, onTitle, onLocation }: Frame,
    permissions: readonly string[],
    where: Pick<FrameContext, 'place' | 'host' | 'location'>
): void {
    const [, go] = useLocation();
    const [bridge, setBridge] = useState<Bridge | null>(null);
    const context = contextOf(plugin, permissions, where);
    const now = useRef(context);
    now.current = context;

    useEffect(() => {
        let timer = setTimeout(onSilent, loadingMs);
        let current: Bridge | null = null;
        const frame = element.current;
        const ports: FramePorts = {
            plugin,
            page,
            title: onTitle,
            navigate: (target) => (/^\/(?!\/)/.test(target) ? go(target) : onLocation(target)),
            resize(height) {
                if (frame !== null) {
                    frame.style.height = `${Math.ceil(height)}px`;
                }
            }
        };
        const hear = ({ source, origin, data }: MessageEvent<{ method?: unknown } | null>): void => {
            // A page without an origin is known by its window alone.
            if (source !== frame?.contentWindow || origin !== 'null' || data?.method !== 'hello') {
                return;
            }
            clearTimeout(timer);
            current?.close();
            const { port1, port2 } = new MessageChannel();
            current = new Bridge(port1, ports);
            setBridge(current);
            frame?.contentWindow?.postMessage(
                { jsonrpc: '2.0', method: 'context', params: now.current },
                '*',
                [port2]
            );
        };
        const loaded = (): void => {
            if (current === null) {
                clearTimeout(timer);
                timer = setTimeout(onSilent, silentMs);
            }
        };
        addEventListener('message', hear);
        frame?.addEventListener('load', loaded);
        return () => {
            clearTimeout(timer);
            removeEventListener('message', hear);
            frame?.removeEventListener('load', loaded);
            current?.close();
        };
        // Everything else that it uses is the same for one page.
    }, [plugin, page.path]);
    useEffect(() => onContext(() => bridge?.tell(contextOf(plugin, permissions, now.current))), [bridge]);
    useEffect(() => bridge?.tell(now.current), [bridge, where.location, permissions.length]);
}
