/** Signs of 24 by 24, drawn with lines. They say nothing to a screen reader: the word is always beside them. */
const paths: Readonly<Record<string, string>> = {
    overview: 'M3 13h8V3H3zM13 21h8V11h-8zM3 21h8v-4H3zM13 7h8V3h-8z',
    globe: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c2.5 2.6 3.8 5.6 3.8 9s-1.3 6.4-3.8 9c-2.5-2.6-3.8-5.6-3.8-9S9.5 5.6 12 3z',
    shield: 'M12 3l8 3v6c0 4.5-3.2 7.7-8 9-4.8-1.3-8-4.5-8-9V6zM9 12l2.2 2.2L15.5 10',
    compass: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM15.5 8.5l-2 5-5 2 2-5z',
    engine: 'M4 6h16v5H4zM4 13h16v5H4zM8 8.5h.01M8 15.5h.01',
    puzzle: 'M9 4a2 2 0 1 1 4 0v2h5v5h-2a2 2 0 1 0 0 4h2v5H4V6h5z',
    users: 'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20c.5-3.6 3-5.5 6.5-5.5s6 1.9 6.5 5.5M16 4.3a3.5 3.5 0 0 1 0 6.4M18 14.8c2 .8 3.2 2.5 3.5 5.2',
    key: 'M8 12a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM11 13l9-9M16 8l3 3',
    history: 'M4 5v5h5M4.6 10A8 8 0 1 1 4 13M12 8v5l3 2',
    tasks: 'M4 6l1.5 1.5L8 5M4 13l1.5 1.5L8 12M4 20l1.5 1.5M11 6.5h9M11 13.5h9M11 20h9M4 19.5h.01',
    settings:
        'M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM19 12l2-1-1.5-3.6-2.2.8-1.5-1.5.8-2.2L13 3l-1 2h-.1L11 3 7.4 4.5l.8 2.2-1.5 1.5-2.2-.8L3 11l2 1-2 1 1.5 3.6 2.2-.8 1.5 1.5-.8 2.2L11 21l1-2 1 2 3.6-1.5-.8-2.2 1.5-1.5 2.2.8L21 13z',
    bell: 'M6 17V11a6 6 0 1 1 12 0v6l1.5 2h-15zM10 21h4',
    transfer: 'M7 4v13M3.5 7.5L7 4l3.5 3.5M17 20V7M13.5 16.5L17 20l3.5-3.5',
    clock: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3.5 2',
    folder: 'M3 6h6l2 2h10v11H3z',
    chart: 'M4 20V4M4 20h16M8 16v-4M12 16V8M16 16v-6',
    box: 'M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9',
    archive: 'M3 4h18v4H3zM5 8v12h14V8M10 12h4',
    database:
        'M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3zM4 6v12c0 1.7 3.6 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3',
    wall: 'M3 5h18v14H3zM3 9.7h18M3 14.4h18M9 5v4.7M15 9.7v4.7M9 14.4V19',
    code: 'M8 7l-5 5 5 5M16 7l5 5-5 5M13.5 5l-3 14',
    layout: 'M3 4h18v16H3zM3 9h18M9 9v11',
    rocket: 'M5 15c-1.5 1-2 3.5-2 6 2.5 0 5-.5 6-2M9 15l-2-2c1-5 5-9 13-10-1 8-5 12-10 13zM14.5 9.5h.01',
    store: 'M4 9l1-5h14l1 5M4 9a2.7 2.7 0 0 0 5.3 0 2.7 2.7 0 0 0 5.4 0A2.7 2.7 0 0 0 20 9M5 12v8h14v-8M10 20v-5h4v5',
    bot: 'M5 8h14v11H5zM12 8V4M9 13h.01M15 13h.01M2 12v3M22 12v3',
    user: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c.6-4.2 3.6-6.5 8-6.5s7.4 2.3 8 6.5',
    exit: 'M14 4h6v16h-6M4 12h11M11 8l4 4-4 4',
    menu: 'M4 7h16M4 12h16M4 17h16',
    more: 'M6 12h.01M12 12h.01M18 12h.01',
    close: 'M6 6l12 12M18 6L6 18',
    plus: 'M12 5v14M5 12h14',
    search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l5 5',
    upload: 'M12 16V4M7 9l5-5 5 5M4 16v4h16v-4',
    download: 'M12 4v12M7 11l5 5 5-5M4 18v2h16v-2',
    play: 'M7 5l12 7-12 7z',
    pause: 'M8 5v14M16 5v14',
    file: 'M6 3h8l4 4v14H6zM14 3v4h4',
    right: 'M9 6l6 6-6 6',
    down: 'M6 9l6 6 6-6',
    check: 'M5 12.5l4.5 4.5L19 7.5',
    warning: 'M12 4l9 16H3zM12 10v4M12 17h.01'
};

/** Names that plugins use for the same signs. */
const others: Readonly<Record<string, string>> = {
    container: 'box',
    containers: 'box',
    package: 'box',
    files: 'folder',
    cron: 'clock',
    timer: 'clock',
    calendar: 'clock',
    firewall: 'wall',
    lock: 'key',
    activity: 'chart',
    pulse: 'chart',
    gauge: 'chart',
    backup: 'archive',
    appstore: 'store',
    apps: 'store',
    disk: 'database',
    php: 'code',
    deploy: 'rocket',
    sparkles: 'bot'
};

/** A sign by its name; the one of a plugin where there is none of that name. */
export function Icon({ name }: { readonly name: string }) {
    return (
        <svg class={`icon icon-${name}`} viewBox="0 0 24 24" aria-hidden="true">
            <path d={paths[name] ?? paths[others[name] ?? ''] ?? paths['puzzle']} />
        </svg>
    );
}
