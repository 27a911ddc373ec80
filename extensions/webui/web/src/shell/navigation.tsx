/** The panel's navigation: the rooms of the core, then the plugins that run, in their groups. */
import { Link, useLocation } from 'wouter-preact';

import { useMe } from '../api/queries.ts';
import { logOut } from '../api/session/login.ts';
import { Button } from '../kit/button.tsx';
import { Icon } from '../kit/icon.tsx';
import { LanguageButton } from '../kit/language.tsx';
import { t } from '../words/t.ts';
import { type Place, usePlaces } from './places.ts';

/** The list of places, and the user. */
export function Navigation() {
    const me = useMe();
    const groups = usePlaces();
    return (
        <nav class="navigation" aria-label={t('Panel')}>
            <Link class="brand" href="/">
                <img src="/favicon.svg" alt="" width="24" height="24" /> Portico
            </Link>
            <div class="groups">
                {groups.map(({ title, places }) => (
                    <Places key={title ?? ''} places={places} {...(title === null ? {} : { title })} />
                ))}
            </div>
            <footer>
                <Link href="/account">
                    <Icon name="user" />
                    {me?.username ?? ''}
                </Link>
                <span class="row">
                    <LanguageButton />
                    <Button look="quiet" label={t('Log out')} onPress={logOut}>
                        <Icon name="exit" />
                    </Button>
                </span>
            </footer>
        </nav>
    );
}

function Places({ title, places }: { readonly title?: string; readonly places: readonly Place[] }) {
    const [location] = useLocation();
    const isHere = (href: string): boolean =>
        location === href || (href !== '/' && location.startsWith(`${href}/`));
    if (places.length === 0) {
        return null;
    }
    return (
        <>
            {title === undefined ? null : <h2>{title}</h2>}
            <ul>
                {places.map(({ href, also, title: text, icon }) => (
                    <li key={href}>
                        <Link
                            href={href}
                            aria-current={
                                isHere(href) || (also !== undefined && isHere(also)) ? 'page' : undefined
                            }
                        >
                            <Icon name={icon} />
                            {text}
                        </Link>
                    </li>
                ))}
            </ul>
        </>
    );
}
