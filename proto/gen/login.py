"""What openapi.json says of the gateway's own login, which no proto has."""

IDENTITY = {
    "type": "object",
    "description": "Whose token it is.",
    "required": ["name", "role"],
    "properties": {
        "name": {"type": "string", "description": "As the token file says"},
        "role": {"type": "string", "enum": ["reader", "user", "admin"]},
    },
    "example": {"name": "ada", "role": "admin"},
}
REQUEST = {
    "type": "object",
    "description": "A token. Without one the header Authorization has it.",
    "additionalProperties": False,
    "properties": {
        "token": {"type": "string", "description": "As the token file says"},
        "max_age_s": {"type": "integer", "minimum": 0, "maximum": 2592000,
                      "description": "Seconds until the browser forgets the cookie; 0: when it ends"},
    },
    "example": {"token": "0123456789abcdef"},
}
SCHEMAS = {"Identity": IDENTITY, "LoginRequest": REQUEST}


def operation(name, summary, description, answer, error, request=None):
    out = {
        "operationId": f"Gateway{name}",
        "tags": ["Gateway"],
        "summary": summary,
        "description": f"{summary}. {description}",
        "responses": {
            "200": {"description": "Done", "content": {"application/json": {"schema": answer}}},
            "4XX": error,
            "5XX": error,
        },
    }
    if request:
        out["requestBody"] = {"required": False, "content": {"application/json": {"schema": request}}}
    return out


def paths(error):
    identity, request = ({"$ref": f"#/components/schemas/{name}"} for name in SCHEMAS)
    return {
        "/v1/login": {
            "get": operation("Identity", "Whose token is shown", "By the header Authorization or the login's cookie.",
                             identity, error),
            "post": operation("Login", "Gives a browser a cookie that shows the token",
                              "HttpOnly, SameSite=Strict, and Secure with HTTPS; taken for an Authorization where a page of"
                              " this server asks.", identity, error, request),
        },
        "/v1/logout": {
            "post": operation("Logout", "Takes the cookie away", "The token stays good.", {"type": "object"}, error),
        },
    }
