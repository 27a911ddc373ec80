/** The sign of an app. */
import { Picture } from '../../kit/display/picture.tsx';
import { Icon } from '../../kit/icon.tsx';
import { type App, base } from './appstore-view.ts';

/** Its own icon, or a box where it has none. @param size - width and height, in pixels */
export function AppIcon({ app: { source, id, icon }, size }: { readonly app: App; readonly size: number }) {
    return icon ? (
        <Picture
            path={`${base}/apps/${encodeURIComponent(source)}/${encodeURIComponent(id)}/icon`}
            size={size}
        />
    ) : (
        <span class="picture" style={{ inlineSize: `${size}px`, blockSize: `${size}px` }}>
            <Icon name="box" />
        </span>
    );
}
